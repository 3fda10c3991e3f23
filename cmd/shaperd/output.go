package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// jsonFlag adds --json, for programs.
func jsonFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON, for programs")
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// A style sets text off on a terminal, and does nothing elsewhere.
type style struct{ on bool }

// styleOf returns the style for w: only a terminal gets colors, and not when
// the environment has NO_COLOR (see no-color.org).
func styleOf(w io.Writer) style {
	f, ok := w.(*os.File)
	return style{ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

func (s style) bold(text string) string   { return s.sgr("1", text) }
func (s style) faint(text string) string  { return s.sgr("2", text) }
func (s style) yellow(text string) string { return s.sgr("33", text) }
func (s style) red(text string) string    { return s.sgr("31", text) }
func (s style) green(text string) string  { return s.sgr("32", text) }

func (s style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// table prints rows in aligned columns, indented; the first row is the head.
func table(w io.Writer, s style, indent string, rows [][]string) {
	columns(w, indent, rows, func(n int, text string) string {
		if n == 0 {
			return s.faint(text)
		}
		return text
	})
}

// columns prints rows in aligned columns, each line as set makes it.
func columns(w io.Writer, indent string, rows [][]string, set func(row int, text string) string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		fmt.Fprintf(w, "%s%s\n", indent, set(n, strings.TrimRight(line.String(), " ")))
	}
}
