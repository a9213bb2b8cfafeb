// graphile-worker: a producer and a runner in one process, with the batching its performance page advises.

import { performance } from "node:perf_hooks";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { Deliveries, enqueueAll, jobs, outstanding, payload, report, secondsUntilCompleted, version } from "../common/driver.mjs";

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
const CONNECTIONS = 26;

const pgPool = new pg.Pool({ max: CONNECTIONS });
pgPool.on("error", console.error);
pgPool.on("connect", (client) => client.on("error", console.error));
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});
await runMigrations({ pgPool, logger });

const deliveries = new Deliveries();
await run({
  pgPool,
  logger,
  noHandleSignals: true,
  taskList: { noop: async (data) => deliveries.record(data) },
  preset: {
    worker: {
      concurrentJobs: CONCURRENCY,
      maxPoolSize: CONNECTIONS,
      localQueue: { size: LOCAL_QUEUE },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
});
const utils = await makeWorkerUtils({ pgPool, logger });

const value = async (query) => Object.values((await pgPool.query(query)).rows[0])[0];
const started = performance.now();
await enqueueAll((number) => utils.addJob("noop", payload(number)));
// A completed job is deleted.
const left = () => value("SELECT count(*)::int FROM graphile_worker._private_jobs");
const seconds = await secondsUntilCompleted(started, deliveries, async () => jobs - (await left()));

report({
  peer: "graphile-worker",
  versions: [version("graphile-worker"), version("pg"), `PostgreSQL ${(await value("SHOW server_version")).split(" ")[0]}`],
  durability: `fsync=on, synchronous_commit=${await value("SHOW synchronous_commit")}`,
  seconds,
  deliveries,
  notes: `one process, ${outstanding} addJob calls at once over ${CONNECTIONS} connections, concurrentJobs ${CONCURRENCY}, localQueue ${LOCAL_QUEUE}, completions batched`,
});
