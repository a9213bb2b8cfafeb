// Package double is the work of the job type `__name__`. Edit this package.
package double

import (
	"errors"
	"fmt"
	"os"
)

// The largest number that is accepted.
const maxN = 1_000_000

// Payload is the payload of a job, parsed from JSON.
type Payload struct {
	N *int64 `json:"n"`
	// The state of the service that does the doubling: "up" or "down".
	Service string `json:"service"`
}

// Result is the result of a job, written as JSON.
type Result struct {
	Doubled int64 `json:"doubled"`
}

// Double doubles the number, or returns an error.
func Double(payload Payload) (Result, error) {
	if payload.N == nil {
		return Result{}, errors.New("bad payload: `n` is missing")
	}
	n := *payload.N
	if n < 0 || n > maxN {
		return Result{}, fmt.Errorf("`n` is %d, which is not in 0 to %d", n, maxN)
	}
	// `jobq logs ID` shows what is written to stderr.
	fmt.Fprintf(os.Stderr, "doubling %d\n", n)
	if payload.Service == "down" {
		return Result{}, errors.New("the service is down")
	}
	return Result{Doubled: n * 2}, nil
}
