"""procrastinate: a producer and a worker in one asyncio process."""

import asyncio
import os
import sys
import time

from procrastinate import App, PsycopgConnector

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
from driver import Deliveries, jobs, outstanding, payload, python, report, version

CONCURRENCY = 24
CONNECTIONS = 26

app = App(connector=PsycopgConnector(min_size=CONNECTIONS, max_size=CONNECTIONS))
deliveries = Deliveries()


@app.task(name="noop")
async def noop(text: str) -> None:
    deliveries.record(text)


async def value(sql: str):
    return next(iter((await app.connector.execute_query_one_async(sql)).values()))


async def client(numbers) -> None:
    for number in numbers:
        await noop.defer_async(text=payload(number))


async def main() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False))
        numbers = iter(range(jobs))
        started = time.perf_counter()
        await asyncio.gather(*(client(numbers) for _ in range(outstanding)))
        completed = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded' AND attempts = 1"
        while not (deliveries.all and await value(completed) == jobs):
            if worker.done():
                worker.result()
            await asyncio.sleep(0.002)
        seconds = time.perf_counter() - started
        report(
            peer="procrastinate",
            versions=[version("procrastinate"), version("psycopg"), python(), f"PostgreSQL {(await value('SHOW server_version')).split()[0]}"],
            durability=f"fsync=on, synchronous_commit={await value('SHOW synchronous_commit')}",
            seconds=seconds,
            deliveries=deliveries,
            notes=f"one asyncio process, {outstanding} defer_async calls at once over {CONNECTIONS} connections, 1 worker with concurrency {CONCURRENCY}",
        )


asyncio.run(main())
