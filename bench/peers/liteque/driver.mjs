// liteque: its calls block under their promises, so the producer and the runner take turns in one thread.
// better-sqlite3 stays below 11.10, which refuses the async transaction that liteque claims jobs in.

import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { sql } from "drizzle-orm";
import { buildDBClient, Runner, SqliteQueue } from "liteque";
import { Deliveries, dir, jobs, outstanding, payload, report, secondsUntilCompleted, setting, version } from "../common/driver.mjs";

const database = buildDBClient(join(dir, "liteque.db"), { runMigrations: true });
database.run(sql.raw(`PRAGMA synchronous = ${setting}`));
const pragma = (name) => Object.values(database.get(sql.raw(`PRAGMA ${name}`)))[0];

const queue = new SqliteQueue("noop", database, { defaultJobArgs: { numRetries: 2 }, keepFailedJobs: true });
const deliveries = new Deliveries();
let next = 0;
const add = async () => {
  if (next < jobs) await queue.enqueue(payload(next++));
};
const runner = new Runner(
  queue,
  { run: async (job) => deliveries.record(job.data), onComplete: add, onError: async (job) => console.error(job.error) },
  { concurrency: 1, pollIntervalMs: 1000, timeoutSecs: 60 },
);

const started = performance.now();
for (let i = 0; i < outstanding; i++) await add();
runner.run();
// A completed job is deleted.
const left = () => database.get(sql`SELECT count(*) AS left FROM tasks`).left;
const seconds = await secondsUntilCompleted(started, deliveries, () => jobs - left());

report({
  peer: "liteque",
  versions: [version("liteque"), version("better-sqlite3"), `SQLite ${database.get(sql`SELECT sqlite_version() AS version`).version}`],
  durability: `${pragma("journal_mode").toUpperCase()}, synchronous=${["OFF", "NORMAL", "FULL"][pragma("synchronous")]}`,
  seconds,
  deliveries,
  notes: `one thread, 1 runner with concurrency 1, ${outstanding} unfinished jobs at most; ${setting === "normal" ? "as shipped" : "synchronous set by the driver"}`,
});
