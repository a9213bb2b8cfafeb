# The recipes of this repository; `just` alone lists them. CI runs the same commands.

# List the recipes
help:
    @just --list

# Format everything
fmt:
    cargo fmt --all

# Warnings are errors
lint:
    cargo fmt --all --check
    cargo clippy --all-targets -- -D warnings

# The whole test suite
test:
    cargo test

# Rebuild the shipped plugin and the test guests from source (installs a wasm toolchain)
guests:
    bash ci/guests.sh

# Every template of `jobq plugin new`, or those named, through a daemon (installs toolchains)
languages *LANGS:
    tests/languages/run {{LANGS}}

# Kills and freezes two daemons under load, round after round
drill *OPTIONS:
    cargo build --release --locked
    tests/drill/run {{OPTIONS}}

# The daemon on the settings in this directory
run:
    cargo run --release -- run

# What this machine does
bench:
    cargo run --release -- bench throughput --all

# All that CI runs
ci:
    bash .ci/run
