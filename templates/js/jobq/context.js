// The running attempt, as a handler sees it.

/**
 * @typedef {object} Context
 * @property {string} jobId the same in every attempt of a job; use it as an idempotency key
 * @property {string} jobType
 * @property {number} attempt the first is 1
 * @property {number} maxAttempts
 * @property {{ debug(line: string): void, info(line: string): void, warn(line: string): void, error(line: string): void }} log
 *   writes log lines; `jobq logs ID` shows them
 * @property {() => number} remainingMs the time left before the host stops this attempt
 * @property {() => boolean} isCancelled whether this job was cancelled
 * @property {(percent: number, message: string) => void} progress reports a percentage from 0 to 100 and a short message
 * @property {(job: FollowUp) => string} enqueue enqueues a job when this attempt completes; if it doesn't, nothing is enqueued.
 *   Returns the id. Throws an error with `tag: 'denied' | 'invalid'` if the job isn't accepted
 *
 * @typedef {object} FollowUp
 * @property {string} jobType
 * @property {unknown} payload
 * @property {number} [priority] members that are left out take the defaults of the job type
 * @property {number} [delayMs]
 * @property {number} [maxAttempts]
 * @property {string} [uniqueKey] at most one unfinished job may have this key
 */

/**
 * A context for tests. `overrides` replaces its values. It records the calls it receives.
 *
 * @param {Partial<Context>} [overrides]
 * @returns {Context & { lines: string[], shown: [number, string][], followUps: FollowUp[] }}
 */
export function fake(overrides = {}) {
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
    ...overrides,
  }
}
