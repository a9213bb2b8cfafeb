;; Proves that tables count as memory: grows four tables in turn, 10,000 references each time, to 20 million in all.
;; The result is how many thousands it got before it was refused, as decimal text.
(module
  (memory (export "memory") 1)
  (table $first 0 funcref)
  (table $second 0 funcref)
  (table $third 0 funcref)
  (table $fourth 0 funcref)

  (global $got (mut i32) (i32.const 0))

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (i32.const 1024))

  (func $handle (export "jobq:handler/handler@0.1.0#handle")
    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (block $refused
      (loop $again
        (br_if $refused (i32.eq (table.grow $first (ref.null func) (i32.const 10000)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (table.grow $second (ref.null func) (i32.const 10000)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (table.grow $third (ref.null func) (i32.const 10000)) (i32.const -1)))
        (call $count)
        (br_if $refused (i32.eq (table.grow $fourth (ref.null func) (i32.const 10000)) (i32.const -1)))
        (call $count)
        (br_if $again (i32.lt_u (global.get $got) (i32.const 20000)))))
    (call $ok_number (global.get $got)))

  (func $count
    (global.set $got (i32.add (global.get $got) (i32.const 10))))

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
