#!/usr/bin/env bash
# Builds every committed .wasm from its source: the plugins that ship and the guests of the tests.
#
#   ci/guests.sh              over the committed ones: plugins/*.wasm and tests/guests/*.wasm
#   ci/guests.sh --out DIR    DIR/plugins/*.wasm and DIR/guests/*.wasm
#
# With rustup's target for WASI (`rustup target add wasm32-wasip1`) this is a plain `cargo build`.
# Without it, it takes Debian's second Rust toolchain, made for wasm, and builds the standard library from source.
# Whatever it builds on the way lies in JOBQ_CI_CACHE, by default ~/.cache/jobq-ci.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repo/ci/wasi-rust.sh"
cache=${JOBQ_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jobq-ci}
shipped=(process_csv send_email generate_report flaky webhook thumbnail)

main() {
    local plugins=$repo/plugins guests=$repo/tests/guests
    if [[ ${1-} == --out && -n ${2-} && $# -eq 2 ]]; then
        plugins=$2/plugins
        guests=$2/guests
    elif [[ $# -gt 0 ]]; then
        sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^Builds/,/^Whatever/!d' >&2
        exit 2
    fi
    mkdir -p "$plugins" "$guests" "$cache"
    cache=$(cd "$cache" && pwd)
    unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
    export CARGO_TARGET_DIR=$cache/target
    built=$CARGO_TARGET_DIR/wasm32-wasip1/release

    if has_wasi_target; then
        cargo=(cargo)
    else
        use_debian_toolchain
    fi

    say "componentize"
    "${cargo[@]}" build --quiet --locked --manifest-path "$repo/ci/componentize/Cargo.toml"
    hide_paths

    say "plugins"
    local plugin
    for plugin in "${shipped[@]}"; do
        build "plugins/$plugin"
        component "$built/$plugin.wasm" "$plugins/$plugin.wasm"
    done

    say "guests"
    build tests/guests --examples --bins
    local source
    for source in "$repo"/tests/guests/handlers/*.rs; do
        component "$built/examples/$(basename "$source" .rs).wasm" "$guests/$(basename "$source" .rs).wasm"
    done
    for source in "$repo"/tests/guests/wat/*.wat; do
        component "$source" "$guests/$(basename "$source" .wat).wasm"
    done
    component "$built/program.wasm" "$guests/program.wasm"

    # Core modules as they are, which jobq turns into components by itself.
    install -m 644 "$built/examples/echo.wasm" "$guests/core_handler.wasm"
    install -m 644 "$built/program.wasm" "$guests/program_p1.wasm"

    refuse_paths "$plugins"/*.wasm "$guests"/*.wasm
    say "done, $(cat "$plugins"/*.wasm "$guests"/*.wasm | wc -c) bytes in $plugins and $guests"
}

# Debian's toolchain for wasm.
use_debian_toolchain() {
    install_wasi_rust
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-22
    cargo=(/usr/bin/cargo)
    build_std=("-Zbuild-std=std,panic_abort" -Zbuild-std-features=optimize_for_size)
}

# Panic messages name source files: as they are called everywhere, not where they lie on this machine.
hide_paths() {
    local package registry flags=()
    for package in "${shipped[@]/#/plugins/}" tests/guests; do
        "${cargo[@]}" fetch --quiet --locked --manifest-path "$repo/$package/Cargo.toml"
    done
    for registry in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        flags+=("--remap-path-prefix=$registry=crates")
    done
    flags+=("--remap-path-prefix=$repo=jobq" "--remap-path-prefix=$CARGO_TARGET_DIR=target")
    if [[ -n ${build_std-} ]]; then
        flags+=(-Lnative=/usr/lib/wasm32-wasi "--remap-path-prefix=/usr/lib/rustlib/src/rust=rust")
    fi
    rustflags=$(IFS=$'\x1f' && echo "${flags[*]}")
}

# build PACKAGE WHAT...
build() {
    local package=$1
    shift
    CARGO_ENCODED_RUSTFLAGS=$rustflags "${cargo[@]}" build --quiet --release --locked \
        ${build_std[@]+"${build_std[@]}"} --target wasm32-wasip1 --manifest-path "$repo/$package/Cargo.toml" "$@"
}

# component IN OUT: what is one already is only copied.
component() {
    "$CARGO_TARGET_DIR/debug/componentize" "$repo/wit" "$1" "$2"
}

refuse_paths() {
    local named
    if named=$(grep -laE '/(root|home|Users|tmp|work|usr)/|\.cargo/' "$@"); then
        say "these name paths of this machine: $named"
        exit 1
    fi
}

say() {
    printf '%4d s  %s\n' "$SECONDS" "$*" >&2
}

main "$@"
