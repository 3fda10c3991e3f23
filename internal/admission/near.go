package admission

import "shaperd/internal/near"

// nearest returns the one of the words that text most likely is a misspelling of, or "".
func nearest(text string, words []string) string {
	if found := near.Words(text, words); len(found) > 0 {
		return found[0]
	}
	return ""
}
