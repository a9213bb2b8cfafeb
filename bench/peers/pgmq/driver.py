"""pgmq: a message queue without a worker; a producer and one loop that reads, runs and archives batches.

The client's package carries pgmq as plain SQL, so the server needs no extension.
"""

import asyncio
import os
import sys
import time

import asyncpg
import psycopg
from pgmq import AsyncPGMQueue
from pgmq.install import get_embedded_sql_version, install_pgmq_from_sql

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "common"))
from driver import Deliveries, jobs, outstanding, payload_object, python, report, version

BATCH = 100
CONNECTIONS = 26

deliveries = Deliveries()


async def produce(queue: AsyncPGMQueue, numbers) -> None:
    for number in numbers:
        await queue.send("noop", payload_object(number))


async def consume(queue: AsyncPGMQueue) -> None:
    while not deliveries.all:
        messages = await queue.read_batch("noop", batch_size=BATCH)
        for message in messages:
            deliveries.record(message.message["n"])
        if messages:
            await queue.archive_batch("noop", [message.msg_id for message in messages])
        else:
            await asyncio.sleep(0.001)


async def main() -> None:
    with psycopg.connect("", autocommit=False) as connection:
        install_pgmq_from_sql(conn=connection)
    pool = await asyncpg.create_pool(min_size=CONNECTIONS, max_size=CONNECTIONS)
    queue = AsyncPGMQueue(pool=pool, init_extension=False)
    await queue.init()
    await queue.create_queue("noop")

    numbers = iter(range(jobs))
    started = time.perf_counter()
    await asyncio.gather(consume(queue), *(produce(queue, numbers) for _ in range(outstanding)))
    while await pool.fetchval("SELECT count(*) FROM pgmq.a_noop WHERE read_ct = 1") != jobs:
        await asyncio.sleep(0.002)
    seconds = time.perf_counter() - started
    server = (await pool.fetchval("SHOW server_version")).split()[0]
    report(
        peer="pgmq",
        versions=[f"pgmq {get_embedded_sql_version()}", f"its Python client {version('pgmq').split()[1]}", version("asyncpg"), python(), f"PostgreSQL {server}"],
        durability=f"fsync=on, synchronous_commit={await pool.fetchval('SHOW synchronous_commit')}",
        seconds=seconds,
        deliveries=deliveries,
        notes=f"one asyncio process, {outstanding} sends at once over {CONNECTIONS} connections, 1 loop that reads and archives {BATCH} messages at a time",
    )


asyncio.run(main())
