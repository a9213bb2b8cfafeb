package jobq

import (
	"fmt"
	"time"
)

// Job describes the job and its attempt.
type Job struct {
	// ID is the same in every attempt; use it as an idempotency key.
	ID      string
	JobType string
	// Attempt is 1 for the first.
	Attempt     uint32
	MaxAttempts uint32
}

// Context is the running attempt.
type Context interface {
	Job() Job
	// Remaining is the time left before the host stops this attempt.
	Remaining() time.Duration
	// IsCancelled says whether this job was cancelled.
	IsCancelled() bool
	// Progress reports a percentage from 0 to 100 and a short message.
	Progress(percent uint8, message string)
	// Enqueue enqueues a job when this attempt completes; if it doesn't, nothing is enqueued. It returns the id.
	Enqueue(FollowUp) (string, error)
}

// FollowUp is a job to enqueue. Fields that are zero take the defaults of its type.
type FollowUp struct {
	JobType string
	// Payload is written as JSON.
	Payload     any
	Priority    *int32
	Delay       time.Duration
	MaxAttempts uint32
	// UniqueKey can be the key of at most one unfinished job.
	UniqueKey string
}

// Fake is a Context for tests. It returns the values of its fields and records the calls it receives.
type Fake struct {
	JobInfo   Job
	Left      time.Duration
	Cancelled bool
	Shown     []string
	FollowUps []FollowUp
}

func (fake *Fake) Job() Job                 { return fake.JobInfo }
func (fake *Fake) Remaining() time.Duration { return fake.Left }
func (fake *Fake) IsCancelled() bool        { return fake.Cancelled }

func (fake *Fake) Progress(percent uint8, message string) {
	fake.Shown = append(fake.Shown, fmt.Sprintf("%d %% %s", percent, message))
}

func (fake *Fake) Enqueue(job FollowUp) (string, error) {
	fake.FollowUps = append(fake.FollowUps, job)
	return fmt.Sprintf("follow-up %d", len(fake.FollowUps)), nil
}
