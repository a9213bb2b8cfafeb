// Package jobq is what a handler is given and what it may answer. Nothing here needs WebAssembly, so handlers can be tested natively.
package jobq

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what becomes of a job.
type Kind uint8

const (
	// KindRetry is another attempt after the backoff of the job type.
	KindRetry Kind = iota
	// KindRetryAfter is another attempt after a delay.
	KindRetryAfter
	// KindFatal buries the job at once.
	KindFatal
	// KindSnooze runs the job again after a delay, and does not count the attempt.
	KindSnooze
)

// Answer is an error that says what becomes of the job. Errors that wrap one count as it.
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

// Retry fails the attempt; there is another after the backoff of the job type.
func Retry(format string, args ...any) error {
	return Answer{Kind: KindRetry, Message: fmt.Sprintf(format, args...)}
}

// RetryAfter fails the attempt; there is another after this delay.
func RetryAfter(delay time.Duration, format string, args ...any) error {
	return Answer{Kind: KindRetryAfter, Message: fmt.Sprintf(format, args...), After: delay}
}

// Fatal fails the job for good.
func Fatal(format string, args ...any) error {
	return Answer{Kind: KindFatal, Message: fmt.Sprintf(format, args...)}
}

// Snooze is no failure: the job runs again after this delay, and this attempt does not count.
func Snooze(delay time.Duration) error {
	return Answer{Kind: KindSnooze, After: delay}
}

// AnswerOf is what an error of a handler says; one that says nothing is a retry with its text.
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
