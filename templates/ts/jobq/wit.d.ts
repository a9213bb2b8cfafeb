// The imports of wit/handler.wit.

declare module 'jobq:handler/log@0.1.0' {
  export function write(level: 'debug' | 'info' | 'warn' | 'error', message: string): void
}

declare module 'jobq:handler/context@0.1.0' {
  export function remainingMs(): number
  export function isCancelled(): boolean
  export function progress(percent: number, message: string): void
}

declare module 'jobq:handler/queue@0.1.0' {
  export interface NewJob {
    jobType: string
    payload: string
    priority?: number
    delayMs?: number
    maxAttempts?: number
    uniqueKey?: string
  }
  export function enqueue(job: NewJob): string
}
