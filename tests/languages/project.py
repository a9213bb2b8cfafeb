"""A project made from a template, and the commands of its README."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from languages import REPO, Language, debian_rust, has_wasi_targets

BASH = shutil.which("bash")


class CommandFailed(Exception):
    """A command of the README failed; the message is what it printed."""


class Project:
    def __init__(self, jobq: str, language: Language, name: str, parent: pathlib.Path):
        self.name = name
        self.dir = parent / name
        self.language = language
        self.jobq = jobq
        kind = ["--program"] if language.program else []
        said(jobq, "plugin", "new", name, "--lang", language.lang, *kind, "--dir", str(parent))
        self.build_env = {}
        self.readme = (self.dir / "README.md").read_text()

    @property
    def wasm(self) -> pathlib.Path:
        return self.dir / f"{self.name}.wasm"

    def make_hostile(self) -> None:
        """Puts the handler of tests/languages/LANG in the place of the template's."""
        for source in files(self.language.hostile):
            target = self.dir / source.relative_to(self.language.hostile)
            if not target.exists():
                raise CommandFailed(f"{source} replaces no file of the template")
            target.write_text(fill(source.read_text(), self.name))

    def install(self, env: dict) -> float:
        """What the README wants to be installed; where rustup has no target for WASI, Debian's toolchain instead."""
        if self.language.lang == "rust" and not has_wasi_targets():
            self.build_env = debian_rust()
            return 0.0
        return self.run("Install", env)

    def build(self, env: dict) -> float:
        return self.run("Build", env | self.build_env)

    def run(self, heading: str, env: dict) -> float:
        """Runs the commands under a heading of the README, and returns the seconds they took."""
        started = time.monotonic()
        done = self.attempt(heading, env)
        if done.returncode != 0:
            raise CommandFailed(f"{done.args[-1].strip()}\nexit status {done.returncode}\n{done.stdout}")
        return time.monotonic() - started

    def try_once(self) -> bool:
        """What the README tries first: one attempt without a daemon."""
        printed = said(self.jobq, "plugin", "run", str(self.wasm), '{"n": 2}')
        if json.loads(printed) != {"doubled": 4}:
            raise CommandFailed(f"`jobq plugin run` printed {printed}")
        return True

    def names_missing_tool(self, env: dict) -> bool:
        """Whether the build says what is missing, and how it can be had, in an environment without its tool."""
        done = self.attempt("Build", env)
        if done.returncode == 0 or not re.search(rf"error: .*\b{self.language.tool}\b.* is missing: ", done.stdout):
            raise CommandFailed(f"no word of a missing `{self.language.tool}`, exit status {done.returncode}\n{done.stdout}")
        return True

    def attempt(self, heading: str, env: dict):
        found = re.search(rf"^## {heading}\n.*?^```sh\n(.*?)^```$", self.readme, re.M | re.S)
        if not found:
            raise CommandFailed(f"{self.dir}/README.md has no commands under `## {heading}`")
        return subprocess.run(
            [BASH, "-euo", "pipefail", "-c", found[1]],
            cwd=self.dir, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )


def said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}")
    return done.stdout


def fill(text: str, name: str) -> str:
    ident = re.sub(r"^(?=[0-9])", "_", re.sub(r"[^a-z0-9_]", "_", name.lower()))
    return text.replace("__name__", name).replace("__ident__", ident)


def files(root: pathlib.Path):
    return sorted(pathlib.Path(dir, name) for dir, _, names in os.walk(root) for name in names)
