// Any answer but a result: to be thrown. This is what the host understands (`job-error` in wit/handler.wit).

export type Answer =
  | { tag: 'retry' | 'fatal'; val: string }
  | { tag: 'retry-after'; val: { message: string; afterMs: number } }
  | { tag: 'snooze'; val: number }

/** Failed: another attempt after the backoff of the job type. */
export const retry = (message: string): Answer => ({ tag: 'retry', val: message })

/** Failed: another attempt after so many milliseconds. */
export const retryAfter = (message: string, ms: number): Answer => ({ tag: 'retry-after', val: { message, afterMs: ms } })

/** Failed for good: the job is dead at once. */
export const fatal = (message: string): Answer => ({ tag: 'fatal', val: message })

/** Not failed, not yet: runs again after so many milliseconds. Not counted as an attempt. */
export const snooze = (ms: number): Answer => ({ tag: 'snooze', val: ms })
