// The running attempt, as a handler sees it.

export interface Context {
  /** The same in every attempt of a job; use it as an idempotency key. */
  jobId: string
  jobType: string
  /** The first is 1. */
  attempt: number
  maxAttempts: number
  /** Writes log lines; `jobq logs ID` shows them. */
  log: Log
  /** The time left before the host stops this attempt. */
  remainingMs(): number
  /** Whether this job was cancelled. */
  isCancelled(): boolean
  /** Reports the progress: a percentage from 0 to 100 and a short message. */
  progress(percent: number, message: string): void
  /**
   * Enqueues a job when this attempt completes; if it doesn't, nothing is enqueued.
   * Returns the id. Throws an error with `tag: 'denied' | 'invalid'` if the job isn't accepted.
   */
  enqueue(job: FollowUp): string
}

export type Level = 'debug' | 'info' | 'warn' | 'error'
export type Log = Record<Level, (...values: unknown[]) => void>

/** Members that are left out take the defaults of the job type. */
export interface FollowUp {
  jobType: string
  payload: unknown
  priority?: number
  delayMs?: number
  maxAttempts?: number
  /** At most one unfinished job may have this key. */
  uniqueKey?: string
}

/** A context for tests. `overrides` replaces its values. It records the calls it receives. */
export function fake(overrides: Partial<Context> = {}) {
  const lines: string[] = []
  const shown: [number, string][] = []
  const followUps: FollowUp[] = []
  const at =
    (level: Level) =>
    (...values: unknown[]) =>
      void lines.push(`${level}: ${values.join(' ')}`)
  return {
    jobId: '0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10',
    jobType: '__name__',
    attempt: 1,
    maxAttempts: 3,
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    remainingMs: () => 30_000,
    isCancelled: () => false,
    progress: (percent: number, message: string) => void shown.push([percent, message]),
    enqueue: (job: FollowUp) => `follow-up ${followUps.push(job)}`,
    lines,
    shown,
    followUps,
    ...overrides,
  }
}
