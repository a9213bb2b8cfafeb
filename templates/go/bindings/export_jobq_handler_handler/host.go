// Package export_jobq_handler_handler connects the handler to the host. The bindings call it.
package export_jobq_handler_handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	host "plugin.local/__ident__/bindings/jobq_handler_context"
	"plugin.local/__ident__/bindings/jobq_handler_queue"
	"plugin.local/__ident__/bindings/jobq_handler_types"
	. "plugin.local/__ident__/bindings/wit/types"
	"plugin.local/__ident__/handler"
	"plugin.local/__ident__/jobq"
)

// Go's garbage collector asks the host for the time when a collection ends. A guest can't call the host while the host is
// passing it a value ("cannot leave component instance"). So garbage is collected only while the handler runs, and not
// during a call that returns a string (Enqueue).
func init() {
	debug.SetGCPercent(-1)
}

// Handle runs one attempt.
func Handle(job jobq_handler_types.Job) Result[string, jobq_handler_types.JobError] {
	debug.SetGCPercent(100)
	defer debug.SetGCPercent(-1)

	result, err := run(job)
	if err == nil {
		return Ok[string, jobq_handler_types.JobError](result)
	}
	answer := jobq.AnswerOf(err)
	switch answer.Kind {
	case jobq.KindRetryAfter:
		delayed := jobq_handler_types.DelayedRetry{Message: answer.Message, AfterMs: milliseconds(answer.After)}
		return Err[string](jobq_handler_types.MakeJobErrorRetryAfter(delayed))
	case jobq.KindFatal:
		return Err[string](jobq_handler_types.MakeJobErrorFatal(answer.Message))
	case jobq.KindSnooze:
		return Err[string](jobq_handler_types.MakeJobErrorSnooze(milliseconds(answer.After)))
	default:
		return Err[string](jobq_handler_types.MakeJobErrorRetry(answer.Message))
	}
}

func run(job jobq_handler_types.Job) (string, error) {
	var payload handler.Payload
	if err := json.Unmarshal([]byte(job.Payload), &payload); err != nil {
		return "", jobq.Fatal("bad payload: %v", err)
	}
	ctx := attempt{jobq.Job{ID: job.Id, JobType: job.JobType, Attempt: job.Attempt, MaxAttempts: job.MaxAttempts}}
	result, err := handler.Handle(ctx, payload)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return "", jobq.Fatal("failed to write the result as JSON: %v", err)
	}
	return string(text), nil
}

type attempt struct {
	job jobq.Job
}

func (attempt attempt) Job() jobq.Job            { return attempt.job }
func (attempt) IsCancelled() bool                { return host.IsCancelled() }
func (attempt) Progress(percent uint8, m string) { host.Progress(percent, m) }

func (attempt) Remaining() time.Duration {
	return time.Duration(min(host.RemainingMs(), 1<<40)) * time.Millisecond
}

func (attempt) Enqueue(job jobq.FollowUp) (string, error) {
	payload, err := json.Marshal(job.Payload)
	if err != nil {
		return "", fmt.Errorf("failed to write the payload as JSON: %w", err)
	}
	request := jobq_handler_queue.NewJob{
		JobType:     job.JobType,
		Payload:     string(payload),
		Priority:    None[int32](),
		DelayMs:     some(milliseconds(job.Delay)),
		MaxAttempts: some(job.MaxAttempts),
		UniqueKey:   some(job.UniqueKey),
	}
	if job.Priority != nil {
		request.Priority = Some(*job.Priority)
	}

	debug.SetGCPercent(-1)
	runtime.GC()
	answer := jobq_handler_queue.Enqueue(request)
	debug.SetGCPercent(100)

	if answer.IsOk() {
		return answer.Ok(), nil
	}
	refused := answer.Err()
	if refused.Tag() == jobq_handler_queue.EnqueueError_Denied {
		return "", errors.New(refused.Denied())
	}
	return "", errors.New(refused.Invalid())
}

// some returns None for the zero value.
func some[T comparable](value T) Option[T] {
	var zero T
	if value == zero {
		return None[T]()
	}
	return Some(value)
}

func milliseconds(delay time.Duration) uint64 {
	return uint64(max(0, delay.Milliseconds()))
}
