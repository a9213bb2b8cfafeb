"""What a handler can call and return. Nothing here needs WebAssembly, so handlers can be tested natively."""

import dataclasses
import json
import traceback
import typing

# The maximum length of the text of an exception, in characters.
MAX_TEXT = 4000


class Answer(Exception):
    """Base class of the answers other than a result. Raise one of its subclasses."""


class Retry(Answer):
    """The attempt fails, and the job runs again after the backoff of its type."""


class RetryAfter(Answer):
    """The attempt fails, and the job runs again after this delay."""

    def __init__(self, message: str, *, seconds: float):
        super().__init__(message)
        self.seconds = seconds


class Fatal(Answer):
    """The job is dead at once."""


class Snooze(Answer):
    """Not a failure: the job runs again after this delay, and the attempt isn't counted."""

    def __init__(self, *, seconds: float):
        super().__init__(f"snooze for {seconds} s")
        self.seconds = seconds


def described(error: BaseException) -> str:
    """The text of an exception: type and message, then the stack frames, innermost first, then the causes.

    `traceback` isn't used to format the frames, because it looks for the source files, which aren't available.
    """
    parts, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = [
            f"    at {frame.f_code.co_name} ({frame.f_code.co_filename}:{line})"
            for frame, line in traceback.walk_tb(error.__traceback__)
        ]
        headline = f"{type(error).__qualname__}: {error}".removesuffix(": ")
        parts.append("\n".join([headline, *reversed(frames)]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    # The host accepts only valid Unicode; a lone surrogate isn't.
    return "\ncaused by: ".join(parts)[:MAX_TEXT].encode(errors="replace").decode()


class Refused(Exception):
    """A follow-up job wasn't accepted; the message has the reason."""


@dataclasses.dataclass
class FollowUp:
    """A follow-up job. Fields that are None take the defaults of its type."""

    job_type: str
    payload: object
    priority: int | None = None
    delay_seconds: float | None = None
    max_attempts: int | None = None
    # At most one unfinished job may have this key.
    unique_key: str | None = None


@dataclasses.dataclass
class Context:
    """The running attempt. In tests, create one with the values to return; it records the calls it receives."""

    # The same in every attempt of a job; use it as an idempotency key.
    job_id: str = "0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10"
    job_type: str = "__name__"
    # The first is 1.
    attempt: int = 1
    max_attempts: int = 3
    remaining: float = 30.0
    cancelled: bool = False
    shown: list = dataclasses.field(default_factory=list)
    follow_ups: list = dataclasses.field(default_factory=list)

    def remaining_seconds(self) -> float:
        """The time left before the host stops this attempt."""
        return self.remaining

    def is_cancelled(self) -> bool:
        """Whether this job was cancelled."""
        return self.cancelled

    def progress(self, percent: int, message: str) -> None:
        """Reports the progress: a percentage from 0 to 100 and a short message."""
        self.shown.append((percent, message))

    def enqueue(self, job: FollowUp) -> str:
        """Enqueues a job when this attempt completes; if it doesn't, nothing is enqueued.

        Returns the id. Raises Refused if the job isn't accepted.
        """
        self.follow_ups.append(job)
        return f"follow-up {len(self.follow_ups)}"


def read(kind: type, text: str):
    """Parses JSON into a dataclass. Ignores members that aren't fields. Raises Fatal if the JSON doesn't match."""
    try:
        members = json.loads(text)
    except ValueError as error:
        raise Fatal(f"bad payload: {error}") from None
    if not isinstance(members, dict):
        raise Fatal("bad payload: it is not an object")

    known = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name in members:
            value, wanted = members[field.name], hints[field.name]
            if not fits(value, wanted):
                raise Fatal(f"bad payload: `{field.name}` is {json.dumps(value)}, not {getattr(wanted, '__qualname__', wanted)}")
            known[field.name] = value
    try:
        return kind(**known)
    except TypeError:
        missing = [f.name for f in dataclasses.fields(kind) if f.name not in known and f.default is dataclasses.MISSING]
        raise Fatal(f"bad payload: `{missing[0]}` is missing") from None


def fits(value: object, wanted: object) -> bool:
    """Whether a value has a plain type. Annotations such as `list[int]` or `str | None` aren't checked."""
    if not isinstance(wanted, type) or typing.get_origin(wanted):
        return True
    if isinstance(value, bool):
        return wanted in (bool, object)
    return isinstance(value, (int, float) if wanted is float else wanted)
