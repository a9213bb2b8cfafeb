"""What a handler is given and what it may answer. Nothing here needs WebAssembly, so handlers can be tested natively."""

import dataclasses
import json
import traceback
import typing

# The most characters of an exception that are kept.
MAX_TEXT = 4000


class Answer(Exception):
    """Any answer but a result. Raise one of its kinds."""


class Retry(Answer):
    """Failed: another attempt after the backoff of the job type."""


class RetryAfter(Answer):
    """Failed: another attempt after this delay."""

    def __init__(self, message: str, *, seconds: float):
        super().__init__(message)
        self.seconds = seconds


class Fatal(Answer):
    """Failed for good: the job is dead at once."""


class Snooze(Answer):
    """Not failed, not yet: runs again after this delay. Not counted as an attempt."""

    def __init__(self, *, seconds: float):
        super().__init__(f"snooze for {seconds} s")
        self.seconds = seconds


def described(error: BaseException) -> str:
    """What and where an exception is: its type and message, then its frames, the innermost first, then its causes.

    The frames are written by hand, since those of `traceback` look for the source, which is not there.
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
    # The host takes Unicode, which half of a surrogate pair is not.
    return "\ncaused by: ".join(parts)[:MAX_TEXT].encode(errors="replace").decode()


class Refused(Exception):
    """A follow-up job was not taken; the message says why."""


@dataclasses.dataclass
class FollowUp:
    """A job to be added. What is None is as the job type says."""

    job_type: str
    payload: object
    priority: int | None = None
    delay_seconds: float | None = None
    max_attempts: int | None = None
    # At most one unfinished job holds it.
    unique_key: str | None = None


@dataclasses.dataclass
class Context:
    """The attempt that is running. Made by a test, it says what it was told to say, and records what it was asked for."""

    # The same in every attempt of the job, so it can serve as an idempotency key.
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
        """How much time is left before this attempt is stopped."""
        return self.remaining

    def is_cancelled(self) -> bool:
        """Whether somebody asked for this job to be cancelled."""
        return self.cancelled

    def progress(self, percent: int, message: str) -> None:
        """Shows how far the attempt has come: 0 to 100 and a few words."""
        self.shown.append((percent, message))

    def enqueue(self, job: FollowUp) -> str:
        """Adds a job that comes into being when this attempt completes, or not at all. Returns its id, or raises Refused."""
        self.follow_ups.append(job)
        return f"follow-up {len(self.follow_ups)}"


def read(kind: type, text: str):
    """Reads JSON into a dataclass; other members than its fields are left out. Raises Fatal where it does not fit."""
    try:
        members = json.loads(text)
    except ValueError as error:
        raise Fatal(f"bad payload: {error}") from None
    if not isinstance(members, dict):
        raise Fatal("bad payload: it is no object")

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
    """Whether a value is of a plain type; annotations such as `list[int]` or `str | None` are not looked into."""
    if not isinstance(wanted, type) or typing.get_origin(wanted):
        return True
    if isinstance(value, bool):
        return wanted in (bool, object)
    return isinstance(value, (int, float) if wanted is float else wanted)
