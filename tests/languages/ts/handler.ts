// Does what no handler should: {"do": "panic" | "throw" | "loop" | "hog" | "follow", "type"}.

import { fatal } from './jobq/answers'
import type { Context } from './jobq/context'

export interface Payload {
  do: string
  type: string
}

export function handle(payload: Payload, ctx: Context): { id: string } {
  switch (payload.do) {
    case 'panic':
      throw new Error('hostile to the end')
    case 'throw':
      throw 'a mere text'
    case 'loop':
      for (;;);
    case 'hog':
      for (const hoard = []; ; ) hoard.push(new Uint8Array(1 << 20).fill(1))
    case 'follow':
      return { id: ctx.enqueue({ jobType: payload.type, payload: { n: 21 } }) }
  }
  throw fatal('no such deed')
}
