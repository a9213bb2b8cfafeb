// plainjob: its calls block. Either the producer and the worker take turns in one thread,
// or the producer is a process of its own and runs as far ahead as it can.

import { join } from "node:path";
import { performance } from "node:perf_hooks";
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker, JobStatus } from "plainjob";
import {
  Deliveries, dir, isProducer, jobs, outstanding, payload, produce, producerApart, report, secondsUntilCompleted,
  setting, startProducer, version,
} from "../common/driver.mjs";

const silent = { debug() {}, info() {}, warn() {}, error: console.error };

const database = new Database(join(dir, "plainjob.db"));
const queue = defineQueue({ connection: better(database), logger: silent });
database.pragma(`synchronous = ${setting}`);

let next = 0;
const add = () => {
  if (next < jobs) queue.add("noop", payload(next++));
};

if (isProducer) {
  await produce(() => {
    while (next < jobs) add();
  });
}

const deliveries = new Deliveries();
const worker = defineWorker("noop", async (job) => deliveries.record(JSON.parse(job.data)), {
  queue,
  logger: silent,
  pollIntervall: producerApart ? 1 : 1000,
  onCompleted: producerApart ? undefined : add,
});

const begin = producerApart ? await startProducer() : () => {
  for (let i = 0; i < outstanding; i++) add();
};
const started = performance.now();
begin();
worker.start();
const seconds = await secondsUntilCompleted(started, deliveries, () => queue.countJobs({ status: JobStatus.Done }));

const pragma = (name) => database.pragma(name, { simple: true });
report({
  peer: "plainjob",
  versions: [version("plainjob"), version("better-sqlite3"), `SQLite ${database.prepare("select sqlite_version()").pluck().get()}`],
  durability: `${pragma("journal_mode").toUpperCase()}, synchronous=${["OFF", "NORMAL", "FULL"][pragma("synchronous")]}`,
  seconds,
  deliveries,
  notes: [
    producerApart
      ? "a producer process and a worker process that polls each ms, backlog as it comes"
      : `producer and worker in one thread, ${outstanding} unfinished jobs at most`,
    "no logging",
    setting === "normal" ? "synchronous as shipped" : "synchronous set by the driver",
  ].join("; "),
});
