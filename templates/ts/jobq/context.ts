// The attempt that is running, as a handler sees it.

export interface Context {
  /** The same in every attempt of the job, so it can serve as an idempotency key. */
  jobId: string
  jobType: string
  /** The first is 1. */
  attempt: number
  maxAttempts: number
  /** Lines that `jobq logs ID` shows. */
  log: Log
  /** How much time is left before this attempt is stopped. */
  remainingMs(): number
  /** Whether somebody asked for this job to be cancelled. */
  isCancelled(): boolean
  /** Shows how far the attempt has come: 0 to 100 and a few words. */
  progress(percent: number, message: string): void
  /**
   * Adds a job that comes into being when this attempt completes, or not at all.
   * Returns its id, or throws an error that says why, with `tag: 'denied' | 'invalid'`.
   */
  enqueue(job: FollowUp): string
}

export type Level = 'debug' | 'info' | 'warn' | 'error'
export type Log = Record<Level, (...values: unknown[]) => void>

/** What is left out is as the job type says. */
export interface FollowUp {
  jobType: string
  payload: unknown
  priority?: number
  delayMs?: number
  maxAttempts?: number
  /** At most one unfinished job holds it. */
  uniqueKey?: string
}

/** A context for tests: says what it is told to say, and records what it is asked for. */
export function fake(told: Partial<Context> = {}) {
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
    ...told,
  }
}
