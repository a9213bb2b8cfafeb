// The job type `__name__`: doubles a number.
//
// An ordinary program: the payload is on stdin, the result goes to stdout, and exit status 0
// means success. With any other status, the job runs again later, and the end of stderr is the error message.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"plugin.local/__ident__/double"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var payload double.Payload
	if err := json.NewDecoder(os.Stdin).Decode(&payload); err != nil {
		return fmt.Errorf("bad payload: %w", err)
	}
	result, err := double.Double(payload)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
