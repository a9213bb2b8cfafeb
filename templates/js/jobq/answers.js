// Any answer but a result: to be thrown. This is what the host understands (`job-error` in wit/handler.wit).

/** Failed: another attempt after the backoff of the job type. */
export const retry = (message) => ({ tag: 'retry', val: message })

/** Failed: another attempt after so many milliseconds. */
export const retryAfter = (message, ms) => ({ tag: 'retry-after', val: { message, afterMs: ms } })

/** Failed for good: the job is dead at once. */
export const fatal = (message) => ({ tag: 'fatal', val: message })

/** Not failed, not yet: runs again after so many milliseconds. Not counted as an attempt. */
export const snooze = (ms) => ({ tag: 'snooze', val: ms })
