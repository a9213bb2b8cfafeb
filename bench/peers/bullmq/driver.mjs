// BullMQ: a producer and a worker in one process, Redis beside it on a Unix socket.

import { performance } from "node:perf_hooks";
import { Queue, Worker } from "bullmq";
import { Deliveries, enqueueAll, outstanding, payload, report, secondsUntilCompleted, version } from "../common/driver.mjs";

const CONCURRENCY = 64;
const connection = { path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null };

const queue = new Queue("noop", { connection });
const deliveries = new Deliveries();
const worker = new Worker("noop", async (job) => deliveries.record(job.data), { connection, concurrency: CONCURRENCY });
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);

const started = performance.now();
await enqueueAll((number) => queue.add("noop", payload(number)));
const seconds = await secondsUntilCompleted(started, deliveries, () => queue.getCompletedCount());

const redis = await queue.client;
const [, fsync] = await redis.config("GET", "appendfsync");
report({
  peer: "bullmq",
  versions: [version("bullmq"), version("ioredis"), `Redis ${/redis_version:(\S+)/.exec(await redis.info("server"))[1]}`],
  durability: `AOF, appendfsync=${fsync}`,
  seconds,
  deliveries,
  notes: `one process, ${outstanding} adds at once, 1 worker with concurrency ${CONCURRENCY}, handlers in the process (no sandboxed processor)`,
});
