package configs

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files and the JSON Schema")

// golden compares got with the named file; go test -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (go test ./configs -update writes it):\n got:\n%s\nwant:\n%s", name, got, want)
	}
}

// Each file in testdata/wrong has its mistakes; what is said of them is beside it.
func TestEveryMistakeIsNamedWithPlaceAndCure(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) < 45 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(filepath.Base(file), text)
			var all Errors
			if p != nil || !errors.As(err, &all) {
				t.Fatalf("got %v, %v, want no policy and Errors", p, err)
			}
			for _, e := range all {
				checkError(t, e, string(text))
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", all.Error()+"\n")
		})
	}
}

// checkError checks what holds of every error.
func checkError(t *testing.T, e *Error, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
		t.Errorf("%v: no such place in the file", e)
	}
	if e.Message == "" || e.Cure == "" || strings.Contains(e.Error(), "\n") {
		t.Errorf("%q: no message, no cure, or more than a line", e)
	}
	if first := e.Message[:1]; first != strings.ToLower(first) {
		t.Errorf("%q begins with a capital", e.Message)
	}
}

func TestErrorsAreJSON(t *testing.T) {
	_, err := Parse("office.yaml", []byte("relays: [{name: web, ciel: 1}]"))
	got, jsonErr := json.MarshalIndent(err, "", "  ")
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	golden(t, "testdata/errors.json", string(got)+"\n")
}
