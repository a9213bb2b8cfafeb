// Tests of handler.ts, without WebAssembly: `npm test`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { handle, type Payload } from './handler'
import { fatal, retry, retryAfter, snooze } from './jobq/answers'
import { fake } from './jobq/context'

const answer = (payload: unknown) => {
  try {
    return handle(payload as Payload, fake())
  } catch (thrown) {
    if (thrown instanceof Error) throw thrown
    return thrown
  }
}

test('doubles', () => {
  const ctx = fake({ attempt: 2 })
  assert.deepEqual(handle({ n: 2 }, ctx), { doubled: 4 })
  assert.deepEqual(ctx.lines, ['info: doubling 2, attempt 2 of 3'])
})

test('an invalid payload is fatal', () => {
  assert.deepEqual(answer({}), fatal('bad payload: `n` is not an integer'))
  assert.deepEqual(answer({ n: '2' }), fatal('bad payload: `n` is not an integer'))
  assert.deepEqual(answer({ n: -1 }), fatal('`n` is -1, which is not in 0 to 1000000'))
})

test('other states of the service', () => {
  assert.deepEqual(answer({ n: 2, service: 'down' }), retry('the service is down'))
  assert.deepEqual(answer({ n: 2, service: 'busy' }), retryAfter('the service is busy', 30_000))
  assert.deepEqual(answer({ n: 2, service: 'closed' }), snooze(60_000))
})
