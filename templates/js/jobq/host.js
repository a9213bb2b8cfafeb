// Between handler.js and the host: the only file that needs WebAssembly. The bundle starts here.

import { isCancelled, progress, remainingMs } from 'jobq:handler/context@0.1.0'
import { write } from 'jobq:handler/log@0.1.0'
import { enqueue } from 'jobq:handler/queue@0.1.0'
import { handle } from '../handler.js'
import { fatal } from './answers.js'

const text = (value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value)))
const at =
  (level) =>
  (...values) =>
    write(level, values.map(text).join(' '))
const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }

// QuickJS has none, and libraries expect one.
globalThis.console = { ...log, log: log.info, trace: log.debug }

export const handler = {
  handle(job) {
    const result = handle(read(job.payload), {
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
    if (typeof result?.then === 'function') throw fatal('the handler is asynchronous: jobq waits for no promise')
    return result === undefined ? '' : JSON.stringify(result)
  },
}

function read(payload) {
  let value
  try {
    value = JSON.parse(payload)
  } catch (error) {
    throw fatal(`bad payload: ${error.message}`)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw fatal('bad payload: it is no object')
  return value
}
