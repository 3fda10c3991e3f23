package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A merge that was not finished leaves its marks, in documents without anybody noticing.
func TestNoMergeIsHalfDone(t *testing.T) {
	marks := regexp.MustCompile(`(?m)^(<{7}|>{7}) `)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if at := marks.FindIndex(text); at != nil {
			t.Errorf("%s has %q", path, text[at[0]:at[1]])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
