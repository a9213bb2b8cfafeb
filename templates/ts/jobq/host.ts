// Between handler.ts and the host: the only file that needs WebAssembly. The bundle starts here.

import { isCancelled, progress, remainingMs } from 'jobq:handler/context@0.1.0'
import { write } from 'jobq:handler/log@0.1.0'
import { enqueue } from 'jobq:handler/queue@0.1.0'
import { handle, type Payload } from '../handler'
import { fatal } from './answers'
import type { Level, Log } from './context'

interface Job {
  id: string
  jobType: string
  payload: string
  attempt: number
  maxAttempts: number
}

const text = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value)))
const at =
  (level: Level) =>
  (...values: unknown[]) =>
    write(level, values.map(text).join(' '))
const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }

// QuickJS has none, and libraries expect one.
Object.assign(globalThis, { console: { ...log, log: log.info, trace: log.debug } })

export const handler = {
  handle(job: Job): string {
    const result: unknown = handle(read(job.payload), {
      jobId: job.id,
      jobType: job.jobType,
      attempt: job.attempt,
      maxAttempts: job.maxAttempts,
      log,
      remainingMs,
      isCancelled,
      progress: (percent, message) => progress(Math.round(Math.min(Math.max(percent, 0), 100)), message),
      enqueue: (job) => enqueue({ ...job, payload: JSON.stringify(job.payload) }),
    })
    if (result instanceof Promise) throw fatal('the handler is asynchronous: jobq waits for no promise')
    return result === undefined ? '' : JSON.stringify(result)
  },
}

function read(payload: string): Payload {
  let value: unknown
  try {
    value = JSON.parse(payload)
  } catch (error) {
    throw fatal(`bad payload: ${(error as Error).message}`)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw fatal('bad payload: it is no object')
  return value as Payload
}
