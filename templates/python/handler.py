"""The handler of the job type `__name__`: doubles a number. Yours to change; what it can call is in jobq.py."""

import logging
from dataclasses import dataclass

from jobq import Context, Fatal, Retry, RetryAfter, Snooze

# A line of this logger is kept with the attempt: `jobq logs ID`.
log = logging.getLogger("handler")

# The greatest number that will be doubled.
MAX_N = 1_000_000


@dataclass
class Payload:
    n: int
    # How the service that does the doubling feels: "up", "down", "busy" or "closed".
    service: str = "up"


def handle(payload: Payload, ctx: Context) -> dict:
    """Runs one attempt. What it returns becomes the result, as JSON; any other answer is raised."""
    if not 0 <= payload.n <= MAX_N:
        # No attempt could help: the job is dead at once.
        raise Fatal(f"`n` is {payload.n}, which is not in 0 to {MAX_N}")

    log.info("doubling %d, attempt %d of %d", payload.n, ctx.attempt, ctx.max_attempts)

    match payload.service:
        case "down":
            # Failed: another attempt after the backoff of the job type. Any other exception does the same, with its traceback.
            raise Retry("the service is down")
        case "busy":
            # Failed: another attempt after a delay of our own.
            raise RetryAfter("the service is busy", seconds=30)
        case "closed":
            # Not failed, only too early: runs again, and this attempt does not count.
            raise Snooze(seconds=60)
    return {"doubled": payload.n * 2}
