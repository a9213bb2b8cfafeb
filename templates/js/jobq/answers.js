// Any answer but a result: to be thrown. This is what the host understands (`job-error` in wit/handler.wit).

/** Failed: another attempt after the backoff of the job type. */
export const retry = (message) => ({ tag: 'retry', val: String(message) })

/** Failed: another attempt after so many milliseconds. */
export const retryAfter = (message, ms) => ({ tag: 'retry-after', val: { message: String(message), afterMs: milliseconds(ms) } })

/** Failed for good: the job is dead at once. */
export const fatal = (message) => ({ tag: 'fatal', val: String(message) })

/** Not failed, not yet: runs again after so many milliseconds. Not counted as an attempt. */
export const snooze = (ms) => ({ tag: 'snooze', val: milliseconds(ms) })

const TAGS = ['retry', 'retry-after', 'fatal', 'snooze']

// The most characters of an error and its stack that are kept.
const MAX_TEXT = 4000

/** The answer that was thrown; anything else that was thrown is a retry with what there is to say about it. */
export const thrownAnswer = (thrown) => (TAGS.includes(thrown?.tag) ? thrown : retry(describe(thrown).slice(0, MAX_TEXT).toWellFormed()))

function describe(thrown) {
  if (thrown instanceof Error) {
    const head = String(thrown)
    const stack = thrown.stack?.trimEnd() ?? ''
    // Node's stack begins with the error, that of QuickJS does not.
    return stack.startsWith(head) ? stack : `${head}\n${stack}`.trimEnd()
  }
  if (typeof thrown !== 'object' || thrown === null) return `thrown: ${String(thrown)}`
  return `thrown: ${JSON.stringify(thrown)}`
}

function milliseconds(ms) {
  if (!Number.isFinite(ms)) throw new TypeError(`a delay is a number of milliseconds, not ${ms}`)
  return Math.max(0, Math.round(ms))
}
