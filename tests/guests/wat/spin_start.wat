;; Proves that the limits hold before the handler is called: its start function never returns.
(module
  (memory (export "memory") 1)

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $spin_at_start
    (loop $forever (br $forever)))

  (start $spin_at_start)

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.const 16)))
