// The handler of the job type `__name__`: doubles a number. Edit this file. jobq/ has what it can call and throw.

import { fatal, retry, retryAfter, snooze } from './jobq/answers'
import type { Context } from './jobq/context'

// The largest number that is accepted.
const MAX_N = 1_000_000

export interface Payload {
  n: number
  /** The state of the service that does the doubling. */
  service?: 'up' | 'down' | 'busy' | 'closed'
}

export interface Result {
  doubled: number
}

/** Runs one attempt. The return value becomes the result, as JSON. Throw any other answer. */
export function handle(payload: Payload, ctx: Context): Result {
  const { n, service = 'up' } = payload

  // Another attempt wouldn't help: the job is dead at once. Nothing else checks the payload against its type.
  if (!Number.isInteger(n)) throw fatal('bad payload: `n` is not an integer')
  if (n < 0 || n > MAX_N) throw fatal(`\`n\` is ${n}, which is not in 0 to ${MAX_N}`)

  ctx.log.info(`doubling ${n}, attempt ${ctx.attempt} of ${ctx.maxAttempts}`)

  switch (service) {
    // The attempt fails, and the job runs again after the backoff of its type. Any other error does the same.
    case 'down':
      throw retry('the service is down')
    // The attempt fails, and the job runs again after this delay, in milliseconds.
    case 'busy':
      throw retryAfter('the service is busy', 30_000)
    // Not a failure: the job runs again after this delay, and the attempt isn't counted.
    case 'closed':
      throw snooze(60_000)
  }
  return { doubled: n * 2 }
}
