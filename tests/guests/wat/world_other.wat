;; Proves that a good component of another world is refused: it exports a greeting, no handler.
(component
  (core module $code
    (memory (export "memory") 1)
    (data (i32.const 16) "\20\00\00\00\05\00\00\00")
    (data (i32.const 32) "hello")
    (func (export "greet") (result i32)
      (i32.const 16)))
  (core instance $code (instantiate $code))
  (func $greet (result string)
    (canon lift (core func $code "greet") (memory $code "memory")))
  (instance $greeter (export "greet" (func $greet)))
  (export "example:other/greeter@1.0.0" (instance $greeter)))
