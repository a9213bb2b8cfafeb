// Package handler does what no handler should: {"do": "panic" | "loop" | "hog" | "follow", "type"}.
package handler

import "plugin.local/__ident__/jobq"

type Payload struct {
	Do   string `json:"do"`
	Type string `json:"type"`
}

type Result struct {
	ID string `json:"id"`
}

var hoard [][]byte

func Handle(ctx jobq.Context, payload Payload) (Result, error) {
	switch payload.Do {
	case "panic":
		panic("hostile to the end")
	case "loop":
		for {
		}
	case "hog":
		for {
			hoard = append(hoard, make([]byte, 1<<20))
		}
	case "follow":
		id, err := ctx.Enqueue(jobq.FollowUp{JobType: payload.Type, Payload: map[string]int{"n": 21}})
		return Result{ID: id}, err
	}
	return Result{}, jobq.Fatal("no such deed")
}
