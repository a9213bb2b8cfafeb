"""Connects handler.py to the host. The only file that needs WebAssembly, and the entry point for componentize-py."""

import json
import logging

import handler
import jobq
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import context, log, queue, types


class Handler(exports.Handler):
    def handle(self, job: types.Job) -> str:
        try:
            payload = jobq.read(handler.Payload, job.payload)
            result = handler.handle(payload, HostContext(job.id, job.job_type, job.attempt, job.max_attempts))
            return "" if result is None else json.dumps(result)
        except jobq.RetryAfter as answer:
            delayed = types.DelayedRetry(message=str(answer), after_ms=milliseconds(answer.seconds))
            raise Err(types.JobError_RetryAfter(delayed)) from None
        except jobq.Retry as answer:
            raise Err(types.JobError_Retry(str(answer))) from None
        except jobq.Fatal as answer:
            raise Err(types.JobError_Fatal(str(answer))) from None
        except jobq.Snooze as answer:
            raise Err(types.JobError_Snooze(milliseconds(answer.seconds))) from None
        except Exception as error:
            raise Err(types.JobError_Retry(jobq.described(error))) from None


class HostContext(jobq.Context):
    def remaining_seconds(self) -> float:
        return context.remaining_ms() / 1000

    def is_cancelled(self) -> bool:
        return context.is_cancelled()

    def progress(self, percent: int, message: str) -> None:
        # A value of the wrong type would make componentize-py panic and end the attempt.
        context.progress(round(min(max(percent, 0), 100)), str(message))

    def enqueue(self, job: jobq.FollowUp) -> str:
        delay_ms = None if job.delay_seconds is None else milliseconds(job.delay_seconds)
        payload = json.dumps(job.payload)
        try:
            return queue.enqueue(
                queue.NewJob(job.job_type, payload, job.priority, delay_ms, job.max_attempts, job.unique_key)
            )
        except Err as error:
            raise jobq.Refused(error.value.value) from None


class HostLog(logging.Handler):
    """Sends log records to the host."""

    def emit(self, record: logging.LogRecord) -> None:
        for least, level in ((40, log.Level.ERROR), (30, log.Level.WARN), (20, log.Level.INFO), (0, log.Level.DEBUG)):
            if record.levelno >= least:
                return log.write(level, self.format(record))


def milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


logging.basicConfig(level=logging.DEBUG, handlers=[HostLog()], format="%(message)s")
