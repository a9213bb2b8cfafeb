package handler

import (
	"testing"
	"time"

	"plugin.local/__ident__/jobq"
)

func answer(n int64, service string) (Result, error) {
	return Handle(&jobq.Fake{}, Payload{N: &n, Service: service})
}

func TestDoubles(t *testing.T) {
	result, err := answer(2, "")
	if err != nil || result.Doubled != 4 {
		t.Fatalf("got %v, %v", result, err)
	}
}

func TestOtherAnswers(t *testing.T) {
	for _, test := range []struct {
		n       int64
		service string
		want    jobq.Answer
	}{
		{-1, "", jobq.Answer{Kind: jobq.KindFatal, Message: "`n` is -1, which is not in 0 to 1000000"}},
		{2, "down", jobq.Answer{Kind: jobq.KindRetry, Message: "the service is down"}},
		{2, "busy", jobq.Answer{Kind: jobq.KindRetryAfter, Message: "the service is busy", After: 30 * time.Second}},
		{2, "closed", jobq.Answer{Kind: jobq.KindSnooze, After: time.Minute}},
	} {
		if _, err := answer(test.n, test.service); jobq.AnswerOf(err) != test.want {
			t.Errorf("%d, %q: got %#v, want %#v", test.n, test.service, err, test.want)
		}
	}
}

func TestPayloadWithoutNumber(t *testing.T) {
	_, err := Handle(&jobq.Fake{}, Payload{})
	if jobq.AnswerOf(err).Kind != jobq.KindFatal {
		t.Fatalf("got %v", err)
	}
}
