package near

import "strings"

// Words returns the words that text most likely is a misspelling of: up to three
// that are equally near, in their order, or none.
func Words(text string, words []string) (best []string) {
	text = strings.ToLower(text)
	least := min(2, (len(text)+1)/3)
	for _, w := range words {
		if len(text) > len(w)+least {
			continue
		}
		switch d := distance(text, w); {
		case d < least || d == least && best == nil:
			best, least = []string{w}, d
		case d == least:
			best = append(best, w)
		}
	}
	if len(best) > 3 {
		return nil
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to turn a into b.
func distance(a, b string) int {
	var older, old []int
	now := make([]int, len(b)+1)
	for j := range now {
		now[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, now = old, now, make([]int, len(b)+1)
		now[0] = i
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			now[j] = min(old[j]+1, now[j-1]+1, old[j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], older[j-2]+1)
			}
		}
	}
	return now[len(b)]
}
