// The attempt that is running, as a handler sees it.

/**
 * @typedef {object} Context
 * @property {string} jobId the same in every attempt of the job, so it can serve as an idempotency key
 * @property {string} jobType
 * @property {number} attempt the first is 1
 * @property {number} maxAttempts
 * @property {{ debug(line: string): void, info(line: string): void, warn(line: string): void, error(line: string): void }} log
 *   lines that `jobq logs ID` shows
 * @property {() => number} remainingMs how much time is left before this attempt is stopped
 * @property {() => boolean} isCancelled whether somebody asked for this job to be cancelled
 * @property {(percent: number, message: string) => void} progress shows how far the attempt has come
 * @property {(job: FollowUp) => string} enqueue adds a job that comes into being when this attempt completes, or not at all;
 *   returns its id, or throws an error that says why, with `tag: 'denied' | 'invalid'`
 *
 * @typedef {object} FollowUp
 * @property {string} jobType
 * @property {unknown} payload
 * @property {number} [priority] what is left out is as the job type says
 * @property {number} [delayMs]
 * @property {number} [maxAttempts]
 * @property {string} [uniqueKey] at most one unfinished job holds it
 */

/**
 * A context for tests: says what it is told to say, and records what it is asked for.
 *
 * @param {Partial<Context>} [told]
 * @returns {Context & { lines: string[], shown: [number, string][], followUps: FollowUp[] }}
 */
export function fake(told = {}) {
  const lines = []
  const shown = []
  const followUps = []
  const at = (level) => (line) => void lines.push(`${level}: ${line}`)
  return {
    jobId: '0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10',
    jobType: '__name__',
    attempt: 1,
    maxAttempts: 3,
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    remainingMs: () => 30_000,
    isCancelled: () => false,
    progress: (percent, message) => void shown.push([percent, message]),
    enqueue: (job) => `follow-up ${followUps.push(job)}`,
    lines,
    shown,
    followUps,
    ...told,
  }
}
