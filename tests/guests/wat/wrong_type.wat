;; Proves that the types are checked when a file is loaded: its `handle` takes a string and returns a number.
(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
      (i32.const 1024))
    (func (export "handle") (param i32 i32) (result i32)
      (i32.const 42)))
  (core instance $code (instantiate $code))
  (func $handle (param "job" string) (result u32)
    (canon lift (core func $code "handle") (memory $code "memory") (realloc (func $code "cabi_realloc"))))
  (instance $handler (export "handle" (func $handle)))
  (export "jobq:handler/handler@0.1.0" (instance $handler)))
