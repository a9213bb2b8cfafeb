// pg-boss: a producer and a worker in one process; the worker is woken by NOTIFY and fetches in batches.

import { performance } from "node:perf_hooks";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { Deliveries, enqueueAll, outstanding, payloadObject, report, secondsUntilCompleted, version } from "../common/driver.mjs";

const BATCH = 256;
const CONNECTIONS = 26;

const boss = new PgBoss({
  host: process.env.PGHOST,
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
  max: CONNECTIONS,
  useListenNotify: true,
});
boss.on("error", console.error);
await boss.start();
await boss.createQueue("noop", { notify: true });

const deliveries = new Deliveries();
await boss.work("noop", { batchSize: BATCH, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }, async (batch) => {
  for (const job of batch) deliveries.record(job.data.n);
});

const observer = new pg.Pool({ max: 1 });
const value = async (query) => Object.values((await observer.query(query)).rows[0])[0];
const started = performance.now();
await enqueueAll((number) => boss.send("noop", payloadObject(number)));
const completed = () => value("SELECT count(*)::int FROM pgboss.job WHERE state = 'completed' AND retry_count = 0");
const seconds = await secondsUntilCompleted(started, deliveries, completed);

report({
  peer: "pg-boss",
  versions: [version("pg-boss"), version("pg"), `PostgreSQL ${(await value("SHOW server_version")).split(" ")[0]}`],
  durability: `fsync=on, synchronous_commit=${await value("SHOW synchronous_commit")}`,
  seconds,
  deliveries,
  notes: `one process, ${outstanding} send calls at once over ${CONNECTIONS} connections, 1 worker with batchSize ${BATCH}, LISTEN/NOTIFY, burstWhenBatchFull`,
});
