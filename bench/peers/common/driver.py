"""What every Python driver does alike: arguments, payloads, the delivery count, the result line."""

import importlib.metadata
import json
import os
import sys
import threading

SYNCHRONOUS = ("OFF", "NORMAL", "FULL")

if len(sys.argv) != 5:
    sys.exit("usage: python driver.py JOBS OUTSTANDING DIR VARIANT")
jobs, outstanding = int(sys.argv[1]), int(sys.argv[2])
directory, variant = sys.argv[3], sys.argv[4]


def payload(number: int) -> str:
    """A string that is 100 bytes of JSON and begins with the number of its job."""
    return str(number).ljust(98, "x")


def payload_object(number: int) -> dict[str, str]:
    """The same 100 bytes for an API that wants an object."""
    return {"n": str(number).ljust(91, "x")}


class Deliveries:
    """How often each job ran, by the number in its payload."""

    def __init__(self) -> None:
        self._ran = [0] * jobs
        self._missing = jobs
        self._lock = threading.Lock()

    def record(self, text: str) -> None:
        """To be called by the handler."""
        number = int(text.rstrip("x"))
        with self._lock:
            self._ran[number] += 1
            self._missing -= self._ran[number] == 1

    @property
    def all(self) -> bool:
        return self._missing == 0

    @property
    def once(self) -> bool:
        return all(times == 1 for times in self._ran)


def version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


def python() -> str:
    return f"Python {sys.version.split()[0]}"


def report(*, peer: str, versions: list[str], durability: str, seconds: float, deliveries: Deliveries, notes: str) -> None:
    """Prints the one line the runner reads, and ends the process with whatever a library left running."""
    line = {
        "peer": peer,
        "version": ", ".join(versions),
        "durability": durability,
        "jobs": jobs,
        "seconds": seconds,
        "jobs_per_s": jobs / seconds,
        "delivered_once": deliveries.once,
        "notes": notes,
    }
    print(json.dumps(line), flush=True)
    os._exit(0)
