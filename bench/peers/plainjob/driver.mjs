// plainjob: its calls block, so the producer and the worker take turns in one thread.

import { join } from "node:path";
import { performance } from "node:perf_hooks";
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker, JobStatus } from "plainjob";
import { Deliveries, dir, jobs, outstanding, payload, report, secondsUntilCompleted, variant, version } from "../common/driver.mjs";

const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const database = new Database(join(dir, "plainjob.db"));
const queue = defineQueue({ connection: better(database), logger: silent });
database.pragma(`synchronous = ${variant}`);

const deliveries = new Deliveries();
let next = 0;
const add = () => {
  if (next < jobs) queue.add("noop", payload(next++));
};
const worker = defineWorker("noop", async (job) => deliveries.record(JSON.parse(job.data)), {
  queue,
  logger: silent,
  onCompleted: add,
});

const started = performance.now();
for (let i = 0; i < outstanding; i++) add();
worker.start();
const seconds = await secondsUntilCompleted(started, deliveries, () => queue.countJobs({ status: JobStatus.Done }));

report({
  peer: "plainjob",
  versions: [version("plainjob"), version("better-sqlite3"), `SQLite ${database.prepare("select sqlite_version()").pluck().get()}`],
  durability: `${database.pragma("journal_mode", { simple: true }).toUpperCase()}, synchronous=${["OFF", "NORMAL", "FULL"][database.pragma("synchronous", { simple: true })]}`,
  seconds,
  deliveries,
  notes: `one thread, 1 worker, ${outstanding} unfinished jobs at most, no logging; ${variant === "normal" ? "as shipped" : "synchronous set by the driver"}`,
});
