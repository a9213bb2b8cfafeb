// Package handler is the handler of the job type `__name__`: it doubles a number. Yours to change.
package handler

import (
	"log/slog"
	"time"

	"plugin.local/__ident__/jobq"
)

// The greatest number that will be doubled.
const maxN = 1_000_000

// Payload is what the JSON of a job is read into.
type Payload struct {
	N *int64 `json:"n"`
	// How the service that does the doubling feels: "up", "down", "busy" or "closed".
	Service string `json:"service"`
}

// Result becomes the JSON of the result.
type Result struct {
	Doubled int64 `json:"doubled"`
}

// Handle runs one attempt.
func Handle(ctx jobq.Context, payload Payload) (Result, error) {
	// No attempt could help: the job is dead at once. So it is when the payload cannot be read.
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
		// Failed: another attempt after the backoff of the job type. Any other error does the same.
		return Result{}, jobq.Retry("the service is down")
	case "busy":
		// Failed: another attempt after a delay of our own.
		return Result{}, jobq.RetryAfter(30*time.Second, "the service is busy")
	case "closed":
		// Not failed, only too early: runs again, and this attempt does not count.
		return Result{}, jobq.Snooze(time.Minute)
	}
	return Result{Doubled: n * 2}, nil
}
