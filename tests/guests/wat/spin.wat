;; Proves that a handler that never returns is stopped by its time, or by its fuel.
(module
  (memory (export "memory") 1)

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $spin
    (loop $forever (br $forever)))

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (call $spin)
    (unreachable)))
