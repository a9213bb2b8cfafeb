// Connects handler.js to the host. The only file that needs WebAssembly, and the entry point of the bundle.

import { isCancelled, progress, remainingMs } from 'jobq:handler/context@0.1.0'
import { write } from 'jobq:handler/log@0.1.0'
import { enqueue } from 'jobq:handler/queue@0.1.0'
import { handle } from '../handler.js'
import { fatal, thrownAnswer } from './answers.js'

// A value of another type than the contract's would end the attempt with a panic of QuickJS.
const text = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))).toWellFormed()
const percentage = (value) => Math.round(Math.min(Math.max(Number(value) || 0, 0), 100))
const at =
  (level) =>
  (...values) =>
    write(level, values.map(text).join(' '))
const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }

// QuickJS has no console, but libraries expect one.
globalThis.console = { ...log, log: log.info, trace: log.debug }

export const handler = {
  handle(job) {
    try {
      return answer(job)
    } catch (thrown) {
      throw thrownAnswer(thrown)
    }
  },
}

function answer(job) {
  const result = handle(read(job.payload), {
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
  if (typeof result?.then === 'function') throw fatal('the handler returned a promise, but handlers must be synchronous')
  return JSON.stringify(result) ?? ''
}

function followUp(job) {
  if (typeof job.jobType !== 'string') throw new TypeError('`jobType` of a follow-up job is not a string')
  const payload = JSON.stringify(job.payload)
  if (payload === undefined) throw new TypeError('`payload` of a follow-up job cannot be written as JSON')
  try {
    return enqueue({ ...job, payload })
  } catch (error) {
    const { tag, val } = error.payload
    throw Object.assign(error, { name: 'Refused', message: val, tag })
  }
}

function read(payload) {
  let value
  try {
    value = JSON.parse(payload)
  } catch (error) {
    throw fatal(`bad payload: ${error.message}`)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw fatal('bad payload: it is not an object')
  return value
}
