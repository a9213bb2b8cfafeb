// The handler of the job type `__name__`: doubles a number. Yours to change; what it can call and answer is in jobq/.

import { fatal, retry, retryAfter, snooze } from './jobq/answers'
import type { Context } from './jobq/context'

// The greatest number that will be doubled.
const MAX_N = 1_000_000

export interface Payload {
  n: number
  /** How the service that does the doubling feels. */
  service?: 'up' | 'down' | 'busy' | 'closed'
}

export interface Result {
  doubled: number
}

/** Runs one attempt. What it returns becomes the result, as JSON; any other answer is thrown. */
export function handle(payload: Payload, ctx: Context): Result {
  const { n, service = 'up' } = payload

  // No attempt could help: the job is dead at once. The type of a payload is only a promise, so it is looked at.
  if (!Number.isInteger(n)) throw fatal('bad payload: `n` is not an integer')
  if (n < 0 || n > MAX_N) throw fatal(`\`n\` is ${n}, which is not in 0 to ${MAX_N}`)

  ctx.log.info(`doubling ${n}, attempt ${ctx.attempt} of ${ctx.maxAttempts}`)

  switch (service) {
    // Failed: another attempt after the backoff of the job type. Any other error does the same, with its stack.
    case 'down':
      throw retry('the service is down')
    // Failed: another attempt after a delay of our own, in milliseconds.
    case 'busy':
      throw retryAfter('the service is busy', 30_000)
    // Not failed, only too early: runs again, and this attempt does not count.
    case 'closed':
      throw snooze(60_000)
  }
  return { doubled: n * 2 }
}
