// Package double is the work of the job type `__name__`. Yours to change.
package double

import (
	"errors"
	"fmt"
	"os"
)

// The greatest number that will be doubled.
const maxN = 1_000_000

// Payload is what the JSON of a job is read into.
type Payload struct {
	N *int64 `json:"n"`
	// How the service that does the doubling feels: "up" or "down".
	Service string `json:"service"`
}

// Result becomes the JSON of the result.
type Result struct {
	Doubled int64 `json:"doubled"`
}

// Double does it, or says why it cannot.
func Double(payload Payload) (Result, error) {
	if payload.N == nil {
		return Result{}, errors.New("bad payload: `n` is missing")
	}
	n := *payload.N
	if n < 0 || n > maxN {
		return Result{}, fmt.Errorf("`n` is %d, which is not in 0 to %d", n, maxN)
	}
	// A line on stderr is kept with the attempt: `jobq logs ID`.
	fmt.Fprintf(os.Stderr, "doubling %d\n", n)
	if payload.Service == "down" {
		return Result{}, errors.New("the service is down")
	}
	return Result{Doubled: n * 2}, nil
}
