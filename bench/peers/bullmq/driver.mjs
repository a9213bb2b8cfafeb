// BullMQ: a producer and a worker, in one process or in two, and Redis beside them on a Unix socket.

import { performance } from "node:perf_hooks";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import {
  Deliveries, enqueueAll, isProducer, outstanding, payload, produce, producerApart, report, secondsUntilCompleted,
  startProducer, version,
} from "../common/driver.mjs";

const CONCURRENCY = 64;
const connection = { path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null };

const queue = new Queue("noop", { connection });
await queue.waitUntilReady();
const enqueue = () => enqueueAll((number) => queue.add("noop", payload(number)));
if (isProducer) await produce(enqueue);

const deliveries = new Deliveries();
const worker = new Worker("noop", async (job) => deliveries.record(job.data), { connection, concurrency: CONCURRENCY });
await worker.waitUntilReady();

const begin = producerApart ? await startProducer() : enqueue;
const started = performance.now();
await begin();
const seconds = await secondsUntilCompleted(started, deliveries, () => queue.getCompletedCount());

const redis = new Redis(connection);
const [, fsync] = await redis.config("GET", "appendfsync");
report({
  peer: "bullmq",
  versions: [version("bullmq"), version("ioredis"), `Redis ${/redis_version:(\S+)/.exec(await redis.info("server"))[1]}`],
  durability: `AOF, appendfsync=${fsync}`,
  seconds,
  deliveries,
  notes: `${producerApart ? "a producer process and a worker process" : "one process"}, ${outstanding} adds at once, 1 worker with concurrency ${CONCURRENCY}, handlers in the process (no sandboxed processor)`,
});
