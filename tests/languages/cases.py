"""What every language has to do through a running daemon. A case raises `AssertionError` with what it saw instead."""

import datetime
import json
import re


class Cases:
    def __init__(self, daemon, good: str, hostile: str, program: bool, exceptions: bool):
        self.daemon = daemon
        self.good = good
        self.hostile = hostile
        self.program = program
        self.exceptions = exceptions

    def names(self) -> list:
        handler = ["retry_after", "bad_payload", "fatal", "snooze", "follow_up"]
        both = ["ok", "log", "retry", "panic", "endless_loop", "memory_hog", "still_serves"]
        thrown = ["refused_follow_up", "thrown_text"] if self.exceptions else []
        return both if self.program else both[:3] + handler + thrown + both[3:]

    def run(self, name: str) -> None:
        getattr(self, name)()

    def attempt(self, payload: dict, *flags: str) -> tuple:
        return self.daemon.first_attempt(self.daemon.enqueue(self.good, payload, *flags))

    def misbehave(self, deed: str, *flags: str, **more) -> tuple:
        """One attempt of the hostile handler: the job, and all that was said."""
        id = self.daemon.enqueue(self.hostile, {"do": deed} | more, "--max-attempts", "1", *flags)
        job = self.daemon.ended(id)
        said = " ".join([job["error"] or "", *(line["message"] for line in self.daemon.logs(id))])
        return job, job["attempts_log"][0]["outcome"], said

    def ok(self):
        job, attempt = self.attempt({"n": 2})
        expect(attempt["outcome"] == "completed", job)
        expect(json.loads(job["result"]) == {"doubled": 4}, job)

    def log(self):
        job, _ = self.attempt({"n": 3})
        logs = self.daemon.logs(job["id"])
        wanted = {"source": "stderr"} if self.program else {"source": "log", "level": "info"}
        # Some languages log `doubling 3, attempt 1 of 3`, others `doubling n=3 attempt=1`.
        expect(any(wanted.items() <= line.items() and re.match(r"doubling (n=)?3\b", line["message"]) for line in logs), logs)

    def retry(self):
        job, attempt = self.attempt({"n": 2, "service": "down"})
        expect(job["status"] == "failed" and attempt["outcome"] == "failed", job)
        expect("the service is down" in job["error"], job)
        expect(4 < delay(job) < 15, job)

    def retry_after(self):
        job, attempt = self.attempt({"n": 2, "service": "busy"})
        expect(job["status"] == "failed" and attempt["outcome"] == "failed", job)
        expect(job["error"] == "the service is busy", job)
        expect(29 < delay(job) < 45, job)

    def bad_payload(self):
        job, _ = self.attempt({"m": 2})
        expect(job["status"] == "dead" and job["error"].startswith("bad payload"), job)

    def fatal(self):
        job, attempt = self.attempt({"n": -1})
        expect(job["status"] == "dead" and job["attempts"] == 1 and attempt["outcome"] == "failed", job)
        expect(job["error"] == "`n` is -1, which is not in 0 to 1000000", job)

    def snooze(self):
        job, attempt = self.attempt({"n": 2, "service": "closed"})
        expect(job["status"] == "pending" and job["attempts"] == 0 and attempt["outcome"] == "snoozed", job)
        expect(59 < delay(job) < 75, job)

    def follow_up(self):
        id = self.daemon.enqueue(self.hostile, {"do": "follow", "type": self.good})
        job = self.daemon.ended(id)
        expect(job["status"] == "completed", job)
        follow_up = self.daemon.ended(json.loads(job["result"])["id"])
        expect(follow_up["type"] == self.good and follow_up["status"] == "completed", follow_up)
        expect(json.loads(follow_up["result"]) == {"doubled": 42}, follow_up)

    def refused_follow_up(self):
        job, outcome, _ = self.misbehave("follow", type="not-granted")
        expect(outcome == "failed", job)
        expect(re.match(r"Refused: .*`not-granted`", job["error"]), job)

    def thrown_text(self):
        job, outcome, _ = self.misbehave("throw")
        expect(outcome == "failed" and "a mere text" in job["error"].splitlines()[0], job)

    def panic(self):
        job, outcome, said = self.misbehave("panic")
        if self.exceptions:
            expect(outcome == "failed", job)
            # First what it was, then where.
            expect(re.match(r"\w*Error: hostile to the end\n +at handle \(", job["error"]), job)
            return
        # A program may end a panic with an exit status, as those of Go do.
        expect(outcome in (["trapped", "failed"] if self.program else ["trapped"]), job)
        expect("hostile to the end" in said, said)

    def endless_loop(self):
        job, outcome, _ = self.misbehave("loop", "--timeout", "1s")
        expect(outcome == "timed_out", job)

    def memory_hog(self):
        job, outcome, said = self.misbehave("hog")
        expect(job["status"] == "dead", job)
        expect(outcome == "out_of_memory" or "memory" in said.lower(), (outcome, said))

    def still_serves(self):
        expect(self.daemon.is_alive(), "the daemon has ended")
        self.ok()


def delay(job: dict) -> float:
    """Seconds from the first attempt to the next."""
    attempt = job["attempts_log"][0]
    return (instant(job["scheduled_at"]) - instant(attempt["started_at"])).total_seconds()


def instant(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def expect(condition: bool, saw) -> None:
    if not condition:
        raise AssertionError(saw if isinstance(saw, str) else json.dumps(saw, indent=2, default=str))
