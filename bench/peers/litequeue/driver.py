"""litequeue: a queue without a worker; one thread puts, pops and finishes in turns."""

import os
import sqlite3
import sys
import time

from litequeue import LiteQueue

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
from driver import SYNCHRONOUS, Deliveries, directory, jobs, outstanding, payload, python, report, variant, version

queue = LiteQueue(os.path.join(directory, "litequeue.db"))
queue.conn.execute(f"PRAGMA synchronous = {variant}")
deliveries = Deliveries()

started = time.perf_counter()
for number in range(min(outstanding, jobs)):
    queue.put(payload(number))
number = min(outstanding, jobs)
while message := queue.pop():
    deliveries.record(message.data)
    queue.done(message.message_id)
    if number < jobs:
        queue.put(payload(number))
        number += 1
seconds = time.perf_counter() - started


def value(sql: str):
    return queue.conn.execute(sql).fetchone()[0]


done = value(f"SELECT count(*) FROM {queue.table} WHERE status = 2 AND done_time IS NOT NULL")
if done != jobs:
    sys.exit(f"litequeue counts {done} jobs as done, expected {jobs}")
report(
    peer="litequeue",
    versions=[version("litequeue"), python(), f"SQLite {sqlite3.sqlite_version}"],
    durability=f"{value('PRAGMA journal_mode').upper()}, synchronous={SYNCHRONOUS[value('PRAGMA synchronous')]}",
    seconds=seconds,
    deliveries=deliveries,
    notes=f"one thread, pop and done one by one, {outstanding} unfinished jobs at most; "
    + ("as shipped" if variant == "normal" else "synchronous set by the driver"),
)
