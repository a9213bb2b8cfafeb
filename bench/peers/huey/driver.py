"""huey on SQLite: a producer process, and a consumer process with threads, as `huey_consumer` makes them."""

import multiprocessing
import os
import sqlite3
import sys
import time

from huey import Huey
from huey.storage import SqliteStorage

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
from driver import SYNCHRONOUS, Deliveries, directory, jobs, outstanding, payload, python, report, variant, version

WORKERS = 4


class Storage(SqliteStorage):
    """SqliteHuey's storage with the synchronous mode of this variant; as shipped it is SQLite's own FULL."""

    def _create_connection(self):
        connection = super()._create_connection()
        connection.execute(f"PRAGMA synchronous = {variant}")
        return connection


huey = Huey("noop", storage_class=Storage, filename=os.path.join(directory, "huey.db"), results=False)
deliveries = Deliveries()
room = multiprocessing.Semaphore(outstanding)


@huey.task()
def noop(text):
    deliveries.record(text)
    room.release()


def produce() -> None:
    for number in range(jobs):
        room.acquire()
        noop(payload(number))


def main() -> None:
    producer = multiprocessing.get_context("fork").Process(target=produce)
    consumer = huey.create_consumer(workers=WORKERS, worker_type="thread", periodic=False, initial_delay=0.001, max_delay=0.01)
    huey.storage.close()
    started = time.perf_counter()
    producer.start()
    consumer.start()
    while not (deliveries.all and huey.pending_count() == 0):
        time.sleep(0.002)
    seconds = time.perf_counter() - started
    producer.join()

    def pragma(name: str):
        return huey.storage.conn.execute(f"PRAGMA {name}").fetchone()[0]

    report(
        peer="huey",
        versions=[version("huey"), python(), f"SQLite {sqlite3.sqlite_version}"],
        durability=f"{pragma('journal_mode').upper()}, synchronous={SYNCHRONOUS[pragma('synchronous')]}",
        seconds=seconds,
        deliveries=deliveries,
        notes=f"a producer process and a consumer process with {WORKERS} threads, polling from 1 ms, no results kept, "
        f"{outstanding} unfinished jobs at most; a job is deleted when it is fetched, so a crash loses it; "
        + ("as shipped" if variant == "full" else "synchronous set by the driver"),
    )


main()
