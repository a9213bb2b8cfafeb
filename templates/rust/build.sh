#!/bin/sh
# Makes __name__.wasm. TARGET=wasm32-wasip1 makes a core module, which jobq accepts too.
set -eu
cd "$(dirname "$0")"
target=${TARGET:-wasm32-wasip2}

command -v cargo >/dev/null || {
    echo "error: cargo is missing: install Rust 1.95 or newer, from rustup.rs" >&2
    exit 1
}
# With this setting, cargo builds the standard library itself, so the target needn't be installed.
[ -n "${CARGO_UNSTABLE_BUILD_STD-}" ] || [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || {
    echo "error: Rust's target $target is missing: rustup target add $target" >&2
    exit 1
}
cargo build --release --target "$target"
cp "${CARGO_TARGET_DIR:-target}/$target/release/__ident___handler.wasm" __name__.wasm
