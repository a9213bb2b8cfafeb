"""What a language costs, and the table of it."""

import dataclasses
import datetime
import json
import os
import platform
import re

JOBS = 300


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
    # Of a whole batch, through the queue, on all cores.
    jobs_per_second: float
    # Mean of an attempt alone, its instance made and thrown away.
    attempt_ms: float
    fuel: int
    memory: int
    # From the empty directory to the first result, tools installed.
    first_result_s: float


def throughput(daemon, job_type: str) -> tuple:
    """Jobs per second from the first start to the last end, and the milliseconds of an attempt."""
    lines = "".join(json.dumps({"type": job_type, "payload": {"n": n}}) + "\n" for n in range(JOBS))
    ids = daemon.command("enqueue", "--bulk", "-", stdin=lines).split()
    daemon.ended(ids[-1])
    jobs = [daemon.ended(id) for id in ids]
    if any(job["status"] != "completed" for job in jobs):
        raise RuntimeError(f"not all of the {JOBS} jobs of `{job_type}` are completed")
    instant = datetime.datetime.fromisoformat
    started = min(instant(job["started_at"]) for job in jobs)
    ended = max(instant(job["completed_at"]) for job in jobs)
    mean = sum(job["attempts_log"][0]["duration_ms"] for job in jobs) / JOBS
    return JOBS / max((ended - started).total_seconds(), 0.001), mean


def table(costs: list) -> str:
    rows = [
        "| language | built by | size | build | first load | start, cached | attempts/s | ms an attempt | fuel | memory | to the first result |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for cost in costs:
        rows.append(
            f"| {cost.language} | {cost.tool} | {size(cost.bytes)} | {seconds(cost.build_s)} | {seconds(cost.first_load_s)} "
            f"| {seconds(cost.cached_start_s)} | {cost.jobs_per_second:.0f} | {cost.attempt_ms:.1f} | {cost.fuel:,} "
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
