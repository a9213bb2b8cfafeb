package double

import "testing"

func TestDouble(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		payload Payload
		want    int64
		problem string
	}{
		{Payload{N: number(2)}, 4, ""},
		{Payload{N: number(-1)}, 0, "`n` is -1, which is not in 0 to 1000000"},
		{Payload{N: number(2), Service: "down"}, 0, "the service is down"},
		{Payload{}, 0, "bad payload: `n` is missing"},
	} {
		result, err := Double(test.payload)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if result.Doubled != test.want || problem != test.problem {
			t.Errorf("got %d, %q, want %d, %q", result.Doubled, problem, test.want, test.problem)
		}
	}
}
