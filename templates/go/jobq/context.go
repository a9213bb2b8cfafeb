package jobq

import (
	"fmt"
	"time"
)

// Job is what is known about the job and its attempt.
type Job struct {
	// ID is the same in every attempt, so it can serve as an idempotency key.
	ID      string
	JobType string
	// Attempt is 1 for the first.
	Attempt     uint32
	MaxAttempts uint32
}

// Context is the attempt that is running.
type Context interface {
	Job() Job
	// Remaining is the time left before this attempt is stopped.
	Remaining() time.Duration
	// IsCancelled says whether somebody asked for this job to be cancelled.
	IsCancelled() bool
	// Progress shows how far the attempt has come: 0 to 100 and a few words.
	Progress(percent uint8, message string)
	// Enqueue adds a job that comes into being when this attempt completes, or not at all. It returns the id of the job.
	Enqueue(FollowUp) (string, error)
}

// FollowUp is a job to be added. What is left zero is as the job type says.
type FollowUp struct {
	JobType string
	// Payload is made JSON.
	Payload     any
	Priority    *int32
	Delay       time.Duration
	MaxAttempts uint32
	// UniqueKey is held by at most one unfinished job.
	UniqueKey string
}

// Fake is a Context for tests: it says what it is told to say and records what it is asked for.
type Fake struct {
	Told      Job
	Left      time.Duration
	Cancelled bool
	Shown     []string
	FollowUps []FollowUp
}

func (fake *Fake) Job() Job                 { return fake.Told }
func (fake *Fake) Remaining() time.Duration { return fake.Left }
func (fake *Fake) IsCancelled() bool        { return fake.Cancelled }

func (fake *Fake) Progress(percent uint8, message string) {
	fake.Shown = append(fake.Shown, fmt.Sprintf("%d %% %s", percent, message))
}

func (fake *Fake) Enqueue(job FollowUp) (string, error) {
	fake.FollowUps = append(fake.FollowUps, job)
	return fmt.Sprintf("follow-up %d", len(fake.FollowUps)), nil
}
