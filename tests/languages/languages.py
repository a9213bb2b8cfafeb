"""The languages: each is a template, and what is peculiar about building it here."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
WASI_RUST = REPO / "ci/wasi-rust.sh"


@dataclasses.dataclass(frozen=True)
class Language:
    """A row of the table."""

    name: str
    # Of `jobq plugin new`.
    lang: str
    # What the build names when it is not there.
    tool: str
    program: bool = False
    # Whether an error that nobody caught is a retry, instead of a trap.
    exceptions: bool = False
    # Added to the environment of its commands.
    env: dict = dataclasses.field(default_factory=dict)
    # Prints the version of what builds it.
    version: str = "true"

    @property
    def template(self) -> str:
        return f"{self.lang}-program" if self.program else self.lang

    @property
    def hostile(self) -> pathlib.Path:
        """Files that replace those of the template, and do what no handler should."""
        return HERE / self.template


RUST_VERSION = "rustc --version | cut -d' ' -f1,2"
C_VERSION = "clang-22 --version | sed -n '1s/.*version \\([0-9.]*\\).*/clang \\1/p'"
ZIG_VERSION = "echo zig $(python3 -m ziglang version)"
GO_VERSION = "go version | cut -d' ' -f3"
QJS_VERSION = "npm ls componentize-qjs | grep -o 'componentize-qjs@[0-9.]*' | tr @ ' '"

LANGUAGES = [
    Language("rust", "rust", "cargo", version=RUST_VERSION),
    Language("python", "python", "componentize-py", exceptions=True, version="pip list 2>/dev/null | awk '/componentize-py/ {print $1, $2}'"),
    Language("js", "js", "esbuild", exceptions=True, version=QJS_VERSION),
    Language("ts", "ts", "esbuild", exceptions=True, version=QJS_VERSION),
    Language("go", "go", "go", version=GO_VERSION),
    Language("c", "c", "clang-22", version=C_VERSION),
    Language("zig", "zig", "ziglang", version=ZIG_VERSION),
    Language("rust-program", "rust", "cargo", program=True, version=RUST_VERSION),
    Language("rust-program-p1", "rust", "cargo", program=True, env={"TARGET": "wasm32-wasip1"}, version=RUST_VERSION),
    Language("go-program", "go", "go", program=True, version=GO_VERSION),
    Language("c-program", "c", "clang-22", program=True, version=C_VERSION),
    Language("zig-program", "zig", "ziglang", program=True, version=ZIG_VERSION),
]


def environment(language: Language, cache: pathlib.Path) -> dict:
    """What the commands of a README run in: its tools come first, and every cache of theirs lies in ours."""
    venv = cache / "venv"
    if not (venv / "bin/pip").exists():
        subprocess.run(["python3", "-m", "venv", str(venv)], check=True)
    kept = {
        "VIRTUAL_ENV": venv,
        "PIP_CACHE_DIR": cache / "pip",
        "npm_config_cache": cache / "npm",
        "GOCACHE": cache / "go-build",
        "GOPATH": cache / "go",
        "ZIG_GLOBAL_CACHE_DIR": cache / "zig",
        "CARGO_TARGET_DIR": cache / "rust",
    }
    env = {name: value for name, value in os.environ.items() if name not in ("RUSTFLAGS", "CARGO_BUILD_TARGET")}
    env.update({name: str(value) for name, value in kept.items()})
    env.update(npm_config_prefer_offline="true", npm_config_audit="false", npm_config_fund="false")
    env.update(PIP_DISABLE_PIP_VERSION_CHECK="1")
    env["PATH"] = os.pathsep.join([str(HERE / "bin"), str(venv / "bin"), env["PATH"]])
    env.update(language.env)
    return env


# What may be expected of any machine, beside the tools of a language.
ORDINARY = ["sh", "env", "dirname", "mkdir", "cp", "rm", "cat", "make", "node", "npm"]


def bare_environment(dir: pathlib.Path) -> dict:
    """One without any build tool, made in `dir`."""
    dir.mkdir()
    (dir / "python3").symlink_to(sys.executable)
    for name in ORDINARY:
        if found := shutil.which(name):
            (dir / name).symlink_to(found)
    return {"PATH": str(dir), "HOME": str(dir)}


def has_wasi_targets() -> bool:
    """Whether `rustup target add` has been here."""
    asked = f'source "{WASI_RUST}" && has_wasi_target wasm32-wasip1 && has_wasi_target wasm32-wasip2'
    return subprocess.run(["bash", "-c", asked]).returncode == 0


def debian_rust() -> dict:
    """What to add to the environment to build for WASI by Debian's toolchain."""
    script = f'source "{WASI_RUST}" && install_wasi_rust && wasi_rust_environment'
    printed = subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    return dict(line.split("=", 1) for line in printed.stdout.splitlines())
