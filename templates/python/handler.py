"""The handler of the job type `__name__`: doubles a number. Edit this file. jobq.py has what it can call and raise."""

import logging
from dataclasses import dataclass

from jobq import Context, Fatal, Retry, RetryAfter, Snooze

# `jobq logs ID` shows the lines of this logger.
log = logging.getLogger("handler")

# The largest number that is accepted.
MAX_N = 1_000_000


@dataclass
class Payload:
    n: int
    # The state of the service that does the doubling: "up", "down", "busy" or "closed".
    service: str = "up"


def handle(payload: Payload, ctx: Context) -> dict:
    """Runs one attempt. The return value becomes the result, as JSON. Raise any other answer."""
    if not 0 <= payload.n <= MAX_N:
        # Another attempt wouldn't help: the job is dead at once.
        raise Fatal(f"`n` is {payload.n}, which is not in 0 to {MAX_N}")

    log.info("doubling %d, attempt %d of %d", payload.n, ctx.attempt, ctx.max_attempts)

    match payload.service:
        case "down":
            # The attempt fails, and the job runs again after the backoff of its type. Any other exception does the same.
            raise Retry("the service is down")
        case "busy":
            # The attempt fails, and the job runs again after this delay.
            raise RetryAfter("the service is busy", seconds=30)
        case "closed":
            # Not a failure: the job runs again after this delay, and the attempt isn't counted.
            raise Snooze(seconds=60)
    return {"doubled": payload.n * 2}
