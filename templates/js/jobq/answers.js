// The answers other than a result. Throw them. Their shape is that of `job-error` in wit/handler.wit.

/** The attempt fails, and the job runs again after the backoff of its type. */
export const retry = (message) => ({ tag: 'retry', val: String(message) })

/** The attempt fails, and the job runs again after this many milliseconds. */
export const retryAfter = (message, ms) => ({ tag: 'retry-after', val: { message: String(message), afterMs: milliseconds(ms) } })

/** The job is dead at once. */
export const fatal = (message) => ({ tag: 'fatal', val: String(message) })

/** Not a failure: the job runs again after this many milliseconds, and the attempt isn't counted. */
export const snooze = (ms) => ({ tag: 'snooze', val: milliseconds(ms) })

const TAGS = ['retry', 'retry-after', 'fatal', 'snooze']

// The maximum length of an error with its stack, in characters.
const MAX_TEXT = 4000

/** The answer for a thrown value: the value itself if it is an answer, otherwise a retry that describes it. */
export const thrownAnswer = (thrown) => (TAGS.includes(thrown?.tag) ? thrown : retry(describe(thrown).slice(0, MAX_TEXT).toWellFormed()))

function describe(thrown) {
  if (thrown instanceof Error) {
    const head = String(thrown)
    const stack = thrown.stack?.trimEnd() ?? ''
    // A stack in Node begins with the error's name and message; in QuickJS it doesn't.
    return stack.startsWith(head) ? stack : `${head}\n${stack}`.trimEnd()
  }
  if (typeof thrown !== 'object' || thrown === null) return `thrown: ${String(thrown)}`
  return `thrown: ${JSON.stringify(thrown)}`
}

function milliseconds(ms) {
  if (!Number.isFinite(ms)) throw new TypeError(`a delay must be a number of milliseconds, not ${ms}`)
  return Math.max(0, Math.round(ms))
}
