// Does what no program should: {"do": "panic" | "loop" | "hog"}.
package main

import (
	"bytes"
	"io"
	"os"
)

var hoard [][]byte

func main() {
	payload, _ := io.ReadAll(os.Stdin)
	if bytes.Contains(payload, []byte("panic")) {
		panic("hostile to the end")
	}
	for bytes.Contains(payload, []byte("hog")) {
		hoard = append(hoard, make([]byte, 1<<20))
	}
	for {
	}
}
