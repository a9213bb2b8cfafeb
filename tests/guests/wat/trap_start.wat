;; Proves that a trap in the start function ends an attempt, and is no fault of loading.
(module
  (memory (export "memory") 1)

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $trap_at_start
    (unreachable))

  (start $trap_at_start)

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.const 16)))
