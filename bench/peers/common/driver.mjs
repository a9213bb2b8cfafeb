// What every Node driver does alike: arguments, payloads, the delivery count, the result line.

import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";

const [jobsText, outstandingText, dir, variant] = process.argv.slice(2);
if (variant === undefined) throw new Error("usage: node driver.mjs JOBS OUTSTANDING DIR VARIANT");

export const jobs = Number(jobsText);
export const outstanding = Number(outstandingText);
export { dir };

/** A variant is a durability setting and perhaps `, producer apart`. */
export const [setting, ...extras] = variant.split(", ");
export const producerApart = extras.includes("producer apart");

/** A string that is 100 bytes of JSON and begins with the number of its job. */
export const payload = (number) => String(number).padEnd(98, "x");

/** The same 100 bytes for an API that wants an object. */
export const payloadObject = (number) => ({ n: String(number).padEnd(92, "x") });

/** How often each job ran, by the number in its payload. */
export class Deliveries {
  #ran = new Uint32Array(jobs);
  #missing = jobs;

  /** To be called by the handler. */
  record(text) {
    const number = Number.parseInt(text, 10);
    if (this.#ran[number]++ === 0) this.#missing--;
  }

  get all() {
    return this.#missing === 0;
  }

  get once() {
    return this.#ran.every((times) => times === 1);
  }
}

/** Whether this process is the producer that `startProducer` of the other one made. */
export const isProducer = process.send !== undefined;

/** Starts this driver a second time, as the producer; call the answer to let it begin. */
export async function startProducer() {
  const producer = fork(process.argv[1], process.argv.slice(2));
  producer.once("exit", (code) => code === 0 || process.exit(1));
  await new Promise((resolve) => producer.once("message", resolve));
  return () => producer.send("begin");
}

/** In the producer: runs `enqueue` once the other process says so, and ends the process. */
export async function produce(enqueue) {
  await new Promise((resolve) => {
    process.once("message", resolve);
    process.send("ready");
  });
  await enqueue();
  process.exit(0);
}

/** Enqueues all jobs, one a call, `outstanding` calls under way at once. */
export async function enqueueAll(enqueue) {
  let next = 0;
  const client = async () => {
    while (next < jobs) await enqueue(next++);
  };
  await Promise.all(Array.from({ length: outstanding }, client));
}

/**
 * Seconds until every job ran and the queue itself counts all of them as completed;
 * the queue is asked only once every handler has run.
 */
export async function secondsUntilCompleted(started, deliveries, completed) {
  while (!(deliveries.all && (await completed()) === jobs)) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return (performance.now() - started) / 1000;
}

/** The installed version of a package of this driver, as `name version`. */
export function version(name) {
  const manifest = join(process.argv[1], "..", "node_modules", name, "package.json");
  return `${name} ${JSON.parse(readFileSync(manifest)).version}`;
}

/** Prints the one line the runner reads, and ends the process with whatever a library left running. */
export function report({ peer, versions, durability, seconds, deliveries, notes }) {
  const line = {
    peer,
    version: versions.join(", "),
    durability,
    jobs,
    seconds,
    jobs_per_s: jobs / seconds,
    delivered_once: deliveries.once,
    notes,
  };
  process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0));
}
