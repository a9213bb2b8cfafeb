;; Proves that the memory limit is about the sum: grows four memories in turn, 1 MiB each time, to 1 GiB in all.
;; The result is how many MiB it got before it was refused, as decimal text.
(module
  (memory (export "memory") 1)
  (memory $second 0)
  (memory $third 0)
  (memory $fourth 0)

  (global $got (mut i32) (i32.const 0))

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (block $refused
      (loop $again
        (br_if $refused (i32.eq (memory.grow (i32.const 16)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (memory.grow $second (i32.const 16)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (memory.grow $third (i32.const 16)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (memory.grow $fourth (i32.const 16)) (i32.const -1)))
        (call $count)
        (br_if $again (i32.lt_u (global.get $got) (i32.const 1024)))))
    (call $ok_number (global.get $got)))

  (func $count
    (global.set $got (i32.add (global.get $got) (i32.const 1))))

  ;; Writes ok("…") with a number and returns its address.
  (func $ok_number (param $number i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 64))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
      (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
      (br_if $digit (local.get $number)))
    (i32.store (i32.const 24) (local.get $at))
    (i32.store (i32.const 28) (i32.sub (i32.const 64) (local.get $at)))
    (i32.const 16)))
