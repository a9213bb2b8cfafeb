// Package handler is the handler of the job type `__name__`: it doubles a number. Edit this package.
package handler

import (
	"log/slog"
	"time"

	"plugin.local/__ident__/jobq"
)

// The largest number that is accepted.
const maxN = 1_000_000

// Payload is the payload of a job, parsed from JSON.
type Payload struct {
	N *int64 `json:"n"`
	// The state of the service that does the doubling: "up", "down", "busy" or "closed".
	Service string `json:"service"`
}

// Result is the result of a job, written as JSON.
type Result struct {
	Doubled int64 `json:"doubled"`
}

// Handle runs one attempt.
func Handle(ctx jobq.Context, payload Payload) (Result, error) {
	// Another attempt wouldn't help: the job is dead at once. The same goes for a payload that can't be parsed.
	if payload.N == nil {
		return Result{}, jobq.Fatal("bad payload: `n` is missing")
	}
	n := *payload.N
	if n < 0 || n > maxN {
		return Result{}, jobq.Fatal("`n` is %d, which is not in 0 to %d", n, maxN)
	}

	slog.Info("doubling", "n", n, "attempt", ctx.Job().Attempt)

	switch payload.Service {
	case "down":
		// The attempt fails, and the job runs again after the backoff of its type. Any other error does the same.
		return Result{}, jobq.Retry("the service is down")
	case "busy":
		// The attempt fails, and the job runs again after this delay.
		return Result{}, jobq.RetryAfter(30*time.Second, "the service is busy")
	case "closed":
		// Not a failure: the job runs again after this delay, and the attempt isn't counted.
		return Result{}, jobq.Snooze(time.Minute)
	}
	return Result{Doubled: n * 2}, nil
}
