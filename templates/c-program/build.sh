#!/bin/sh
# Builds __name__.wasm. Needs Debian's clang-22, lld-22, wasi-libc and libclang-rt-22-dev-wasm32.
set -eu
cd "$(dirname "$0")"
clang-22 --target=wasm32-wasi -Os -Wall -Wextra __name__.c -o __name__.wasm
