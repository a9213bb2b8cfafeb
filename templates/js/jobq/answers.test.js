// Tests of answers.js, without WebAssembly: `npm test`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fatal, retry, retryAfter, snooze, thrownAnswer } from './answers.js'

test('a thrown answer is returned as it is', () => {
  for (const answer of [retry('down'), retryAfter('busy', 30_000), fatal('bad'), snooze(60_000)]) {
    assert.equal(thrownAnswer(answer), answer)
  }
})

test('an error becomes a retry with its message and stack', () => {
  let thrown
  try {
    undefined.width
  } catch (error) {
    thrown = error
  }
  const { tag, val } = thrownAnswer(thrown)
  assert.equal(tag, 'retry')
  assert.match(val, /^TypeError: .*undefined.*\n +at .*answers\.test/)
})

test('a message that the stack lacks is added', () => {
  const error = Object.assign(new RangeError('too wide'), { stack: '    at handle (bundle.js:3)\n' })
  assert.deepEqual(thrownAnswer(error), retry('RangeError: too wide\n    at handle (bundle.js:3)'))
})

test('any other thrown value becomes a retry that describes it', () => {
  assert.deepEqual(thrownAnswer('no width'), retry('thrown: no width'))
  assert.deepEqual(thrownAnswer(undefined), retry('thrown: undefined'))
  assert.deepEqual(thrownAnswer({ code: 7 }), retry('thrown: {"code":7}'))
})

test('the text of an error is bounded', () => {
  assert.equal(thrownAnswer(new Error('x'.repeat(1_000_000))).val.length, 4000)
  assert.equal(thrownAnswer('x\u{d83d}\u{de00}'.repeat(4000)).val.isWellFormed(), true)
})

test('a delay is a whole number of milliseconds', () => {
  assert.deepEqual(snooze(1.5), snooze(2))
  assert.deepEqual(snooze(-1), snooze(0))
  assert.throws(() => retryAfter('busy', Number.NaN), /milliseconds, not NaN/)
})
