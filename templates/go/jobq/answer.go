// Package jobq has what a handler can call and return. Nothing here needs WebAssembly, so handlers can be tested natively.
package jobq

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what happens to a job.
type Kind uint8

const (
	// KindRetry runs the job again after the backoff of its type.
	KindRetry Kind = iota
	// KindRetryAfter runs the job again after a delay.
	KindRetryAfter
	// KindFatal makes the job dead at once.
	KindFatal
	// KindSnooze runs the job again after a delay, without counting the attempt.
	KindSnooze
)

// Answer is an error that says what happens to the job. It may be wrapped in other errors.
type Answer struct {
	Kind    Kind
	Message string
	After   time.Duration
}

func (answer Answer) Error() string {
	if answer.Kind == KindSnooze {
		return fmt.Sprintf("snooze for %v", answer.After)
	}
	return answer.Message
}

// Retry fails the attempt. The job runs again after the backoff of its type.
func Retry(format string, args ...any) error {
	return Answer{Kind: KindRetry, Message: fmt.Sprintf(format, args...)}
}

// RetryAfter fails the attempt. The job runs again after this delay.
func RetryAfter(delay time.Duration, format string, args ...any) error {
	return Answer{Kind: KindRetryAfter, Message: fmt.Sprintf(format, args...), After: delay}
}

// Fatal makes the job dead at once.
func Fatal(format string, args ...any) error {
	return Answer{Kind: KindFatal, Message: fmt.Sprintf(format, args...)}
}

// Snooze is not a failure: the job runs again after this delay, and the attempt isn't counted.
func Snooze(delay time.Duration) error {
	return Answer{Kind: KindSnooze, After: delay}
}

// AnswerOf returns the Answer in an error's chain, or a retry with the error's text if there is none.
func AnswerOf(err error) Answer {
	var answer Answer
	if !errors.As(err, &answer) {
		return Answer{Kind: KindRetry, Message: err.Error()}
	}
	if answer.Kind != KindSnooze {
		answer.Message = err.Error()
	}
	return answer
}
