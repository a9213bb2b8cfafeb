//! Does what no program should: `{"do": "panic" | "loop" | "hog"}`.

use std::io;

fn main() {
    let payload = io::read_to_string(io::stdin()).expect("stdin can be read");
    if payload.contains("panic") {
        panic!("hostile to the end");
    }
    if payload.contains("hog") {
        let mut hoard = Vec::new();
        loop {
            hoard.push(vec![1u8; 1 << 20]);
            std::hint::black_box(&hoard);
        }
    }
    #[expect(clippy::empty_loop, reason = "the point of it")]
    loop {}
}
