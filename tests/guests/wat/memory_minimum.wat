;; Proves that a file which starts with more memory than any limit is refused, with a reason: 4 GiB at once.
(module
  (memory (export "memory") 65536)

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.const 16)))
