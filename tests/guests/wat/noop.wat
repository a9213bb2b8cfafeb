;; The smallest handler: no WASI, the empty result. What the benchmark runs.
(module
  (memory (export "memory") 1)

  ;; Nobody reads the strings of the job, so they may all lie in one place; only the room has to be there.
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $missing i32)
    (local.set $missing
      (i32.sub
        (i32.shr_u (i32.add (local.get $size) (i32.const 0x103ff)) (i32.const 16)) ;; pages up to 1024 + size
        (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1))
          (then (unreachable)))))
    (i32.const 1024))

  ;; Returns the address of the answer; the zeros at 16 say ok("").
  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param $id i32) (param $id_length i32) (param $type i32) (param $type_length i32)
    (param $payload i32) (param $payload_length i32) (param $attempt i32) (param $max_attempts i32)
    (result i32)
    (i32.const 16)))
