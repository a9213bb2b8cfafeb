// Connects handler.ts to the host. The only file that needs WebAssembly, and the entry point of the bundle.

import { isCancelled, progress, remainingMs } from 'jobq:handler/context@0.1.0'
import { write } from 'jobq:handler/log@0.1.0'
import { enqueue } from 'jobq:handler/queue@0.1.0'
import { handle, type Payload } from '../handler'
import { fatal, thrownAnswer } from './answers'
import type { FollowUp, Level, Log } from './context'

interface Job {
  id: string
  jobType: string
  payload: string
  attempt: number
  maxAttempts: number
}

// The error that `enqueue` throws.
interface ComponentError extends Error {
  payload: { tag: 'denied' | 'invalid'; val: string }
}

// A value of another type than the contract's would end the attempt with a panic of QuickJS.
const text = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))).toWellFormed()
const percentage = (value: number) => Math.round(Math.min(Math.max(value || 0, 0), 100))
const at =
  (level: Level) =>
  (...values: unknown[]) =>
    write(level, values.map(text).join(' '))
const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }

// QuickJS has no console, but libraries expect one.
Object.assign(globalThis, { console: { ...log, log: log.info, trace: log.debug } })

export const handler = {
  handle(job: Job): string {
    try {
      return answer(job)
    } catch (thrown) {
      throw thrownAnswer(thrown)
    }
  },
}

function answer(job: Job): string {
  const result: unknown = handle(read(job.payload), {
    jobId: job.id,
    jobType: job.jobType,
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    log,
    remainingMs,
    isCancelled,
    progress: (percent, message) => progress(percentage(percent), text(message)),
    enqueue: followUp,
  })
  if (result instanceof Promise) throw fatal('the handler returned a promise, but handlers must be synchronous')
  return JSON.stringify(result) ?? ''
}

function followUp(job: FollowUp): string {
  const payload = JSON.stringify(job.payload)
  if (payload === undefined) throw new TypeError('`payload` of a follow-up job cannot be written as JSON')
  try {
    return enqueue({ ...job, payload })
  } catch (error) {
    const { tag, val } = (error as ComponentError).payload
    throw Object.assign(error as ComponentError, { name: 'Refused', message: val, tag })
  }
}

function read(payload: string): Payload {
  let value: unknown
  try {
    value = JSON.parse(payload)
  } catch (error) {
    throw fatal(`bad payload: ${(error as Error).message}`)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw fatal('bad payload: it is not an object')
  return value as Payload
}
