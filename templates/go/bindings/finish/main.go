// Command finish adds the section `component-type` to a core module. jobq needs it to turn the module into a component.
//
//	finish CORE.wasm OUT.wasm
package main

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
)

//go:embed component-type.section
var section []byte

func main() {
	if len(os.Args) != 3 {
		fail("usage: finish CORE.wasm OUT.wasm")
	}
	module, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	// A custom section may be the last one. It consists of its number, 0, its length and its content.
	module = append(module, 0)
	module = binary.AppendUvarint(module, uint64(len(section)))
	module = append(module, section...)
	if err := os.WriteFile(os.Args[2], module, 0o644); err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "error:", why)
	os.Exit(1)
}
