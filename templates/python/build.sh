#!/bin/sh
# Makes __name__.wasm.
set -eu
cd "$(dirname "$0")"

command -v componentize-py >/dev/null || {
    echo "error: componentize-py is missing: pip install componentize-py==0.25.1" >&2
    exit 1
}
componentize-py -d wit -w job-handler componentize app -p . -o __name__.wasm
