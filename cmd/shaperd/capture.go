package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"shaperd/classify"
	"shaperd/configs"
)

// A captureView is what a capture file holds, for programs.
type captureView struct {
	Flows   []flowCount `json:"flows"`   // those with the most bytes first
	Skipped int         `json:"skipped"` // packets that are not IP, or cut too short
}

type flowCount struct {
	Flow    flowView `json:"flow"`
	Class   string   `json:"class"`
	Packets int      `json:"packets"`
	Bytes   int64    `json:"bytes"` // on the wire, with all headers
}

// explainCapture lists the flows of a capture file, each with its class.
func explainCapture(w io.Writer, p *configs.Policy, file string, asJSON bool) error {
	classifier, err := classify.Compile(p.Rules)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read capture: %w", err)
	}
	defer f.Close()
	capture, err := classify.ReadCapture(f)
	if err != nil {
		return fmt.Errorf("read capture %s: %w", file, err)
	}
	slices.SortStableFunc(capture.Flows, func(a, b classify.CapturedFlow) int { return cmp.Compare(b.Bytes, a.Bytes) })

	v := captureView{Flows: []flowCount{}, Skipped: capture.Skipped}
	rows := [][]string{{"CLASS", "PACKETS", "BYTES", "FLOW"}}
	for _, c := range capture.Flows {
		class, _ := classifier.Classify(&c.Flow)
		v.Flows = append(v.Flows, flowCount{viewFlow(c.Flow), class, c.Packets, c.Bytes})
		rows = append(rows, []string{class, strconv.Itoa(c.Packets), strconv.FormatInt(c.Bytes, 10), c.String()})
	}
	if asJSON {
		return printJSON(w, v)
	}
	table(w, styleOf(w), "", rows)
	if v.Skipped > 0 {
		fmt.Fprintf(w, "packets that are not IP, or cut too short: %d\n", v.Skipped)
	}
	return nil
}
