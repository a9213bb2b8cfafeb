"""A jobq daemon in a directory of its own, and the commands that talk to it."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

SETTINGS = """
[worker]
shutdown_grace = "1s"

[defaults]
timeout = "60s"
memory = "64MiB"
backoff = { base = "5s", max = "1h", jitter = 0.0 }
"""

# How long anything may take before the suite gives up on it. Compiling Python takes minutes where much else is going on.
PATIENCE = 900


class Daemon:
    def __init__(self, jobq: str, dir: pathlib.Path):
        self.jobq = jobq
        self.dir = dir
        (dir / "plugins").mkdir(parents=True)
        (dir / "jobq.toml").write_text(SETTINGS)
        self.start()

    def start(self) -> None:
        self.log = self.dir / "daemon.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([self.jobq, "run"], cwd=self.dir, stdout=log, stderr=log)
        self.wait_for_line("jobq is ready")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def wait_for_line(self, text: str) -> None:
        def look():
            if not self.is_alive():
                raise RuntimeError(f"the daemon ended with status {self.process.returncode}:\n{self.log.read_text()}")
            return text in self.log.read_text()

        wait(f"`{text}` in the daemon's log", look)

    def drop(self, wasm: pathlib.Path) -> float:
        """Puts a file into plugins/ in one move, and returns the seconds until it serves."""
        started = time.monotonic()
        partial = self.dir / "partial"
        shutil.copy(wasm, partial)
        partial.rename(self.dir / "plugins" / wasm.name)
        self.wait_until_served(wasm.name)
        return time.monotonic() - started

    def wait_until_served(self, file: str) -> None:
        def look():
            log = re.sub(r"\x1b\[[0-9;]*m", "", self.log.read_text())
            refused = re.search(rf"plugin `{re.escape(file)}` does not.*", log)
            if refused or not self.is_alive():
                raise RuntimeError(f"`{file}` is not served:\n{log}")
            return f"plugin `{file}` serves" in log

        wait(f"`{file}` to serve", look)

    def configure(self, text: str) -> None:
        """Adds to jobq.toml, and waits until the daemon has read it."""
        with open(self.dir / "jobq.toml", "a") as settings:
            settings.write(text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for_line("settings reloaded")

    def command(self, *args: str, status=(0,), stdin: str = "") -> str:
        done = subprocess.run([self.jobq, *args], cwd=self.dir, input=stdin, capture_output=True, text=True)
        if done.returncode not in status:
            raise RuntimeError(f"jobq {' '.join(args)}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    def enqueue(self, job_type: str, payload: dict, *flags: str) -> str:
        return self.command("enqueue", job_type, json.dumps(payload), *flags).strip()

    def show(self, id: str) -> dict:
        return json.loads(self.command("show", id, "-o", "json"))

    def logs(self, id: str) -> list:
        return [json.loads(line) for line in self.command("logs", id, "-o", "ndjson").splitlines()]

    def first_attempt(self, id: str) -> tuple:
        """The job and its first attempt, as soon as that has ended."""

        def look():
            job = self.show(id)
            return (job, job["attempts_log"][0]) if job["attempts_log"] else None

        return wait(f"the first attempt of job {id}", look)

    def ended(self, id: str) -> dict:
        """The job, as soon as it is completed, dead or cancelled."""

        def look():
            job = self.show(id)
            return job if job["completed_at"] else None

        return wait(f"the end of job {id}", look)


def wait(what: str, look):
    """Looks until there is something to see."""
    give_up = time.monotonic() + PATIENCE
    while not (seen := look()):
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.02)
    return seen
