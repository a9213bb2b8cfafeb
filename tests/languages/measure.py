"""What a language costs, and the table of it."""

import dataclasses
import datetime
import json
import os
import platform
import re

from daemon import wait

MOST_JOBS = 10_000


@dataclasses.dataclass
class Cost:
    language: str
    tool: str
    bytes: int
    build_s: float
    # From the moment the file is in plugins/ until it serves.
    first_load_s: float
    # From the start of a daemon until it serves, the compiled code lying in its cache.
    cached_start_s: float
    # Through the queue, on all cores, each with an instance of its own.
    per_second: float
    # Of one after the other.
    attempt_ms: float
    fuel: int
    memory: int
    # From the empty directory to the first result, tools installed.
    first_result_s: float


def throughput(daemon, job_type: str) -> float:
    """Attempts per second, from the first start to the last end of a batch that takes a second or two."""
    jobs = 100
    while True:
        seconds = batch(daemon, job_type, jobs)
        if seconds > 1 or jobs == MOST_JOBS:
            return jobs / seconds
        jobs = min(MOST_JOBS, jobs * 10)


def batch(daemon, job_type: str, jobs: int) -> float:
    lines = "".join(json.dumps({"type": job_type, "payload": {"n": n}}) + "\n" for n in range(jobs))
    last = daemon.command("enqueue", "--bulk", "-", stdin=lines).split()[-1]
    daemon.ended(last)

    def look():
        listed = daemon.command("list", "--type", job_type, "--limit", str(jobs), "-o", "ndjson")
        done = [json.loads(line) for line in listed.splitlines()]
        return done if all(job["completed_at"] for job in done) else None

    done = wait(f"{jobs} jobs of `{job_type}`", look)
    if any(job["status"] != "completed" for job in done):
        raise RuntimeError(f"not all of {jobs} jobs of `{job_type}` are completed")
    instant = datetime.datetime.fromisoformat
    started = min(instant(job["started_at"]) for job in done)
    return (max(instant(job["completed_at"]) for job in done) - started).total_seconds()


def table(costs: list) -> str:
    rows = [
        "| language | built by | size | build | first load | start, cached | attempts/s | an attempt | fuel | memory | to the first result |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in costs:
        rows.append(
            f"| {cost.language} | {cost.tool} | {size(cost.bytes)} | {seconds(cost.build_s)} | {seconds(cost.first_load_s)} "
            f"| {seconds(cost.cached_start_s)} | {cost.per_second:,.0f} | {cost.attempt_ms:.2f} ms | {cost.fuel:,} "
            f"| {size(cost.memory)} | {seconds(cost.first_result_s)} |"
        )
    return "\n".join(rows)


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def machine() -> str:
    try:
        model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())[1]
    except (OSError, TypeError):
        model = platform.machine()
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}"
