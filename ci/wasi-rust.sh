# How Rust is built for WASI on this machine; to be sourced.
#
# With rustup's target for WASI that is a plain `cargo build`. Without it, Debian has a second Rust toolchain, made for wasm,
# which builds the standard library from source.

wasi_rust_packages=(rustc-web cargo-web rust-web-src wasi-libc lld-22)

# Whether the toolchain of this machine can build for WASI: preview 1, or the target that is named.
has_wasi_target() {
    [[ -d $(rustc --print sysroot 2>/dev/null)/lib/rustlib/${1-wasm32-wasip1} ]]
}

# Installs what is missing of Debian's toolchain: std is source, linker and C library are other packages.
install_wasi_rust() {
    local package missing=() root=()
    for package in "${wasi_rust_packages[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    echo "installing ${missing[*]}" >&2
    [[ $EUID -eq 0 ]] || root=(sudo)
    "${root[@]}" apt-get update -qq
    "${root[@]}" apt-get install -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends "${missing[@]}" >/dev/null
}

# The variables, one a line, with which a plain `cargo build --target wasm32-wasip1` takes Debian's toolchain.
wasi_rust_environment() {
    cat <<EOF
PATH=/usr/bin:$PATH
TARGET=wasm32-wasip1
RUSTC=/usr/bin/rustc
RUSTC_BOOTSTRAP=1
CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-22
CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS=-Lnative=/usr/lib/wasm32-wasi
CARGO_UNSTABLE_BUILD_STD=std,panic_abort
CARGO_UNSTABLE_BUILD_STD_FEATURES=optimize_for_size
EOF
}
