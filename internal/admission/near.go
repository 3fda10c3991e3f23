package admission

// maxName is the longest name that a similar one is sought for: the search takes its square.
const maxName = 64

// nearest returns the one of the words that differs least from text, if it differs little.
func nearest(text string, words []string) (best string) {
	if len(text) > maxName {
		return ""
	}
	least := min(max(len(text)/3, 2)+1, len(text)) // two letters in the other's place are two changes
	for _, w := range words {
		if d := distance(text, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is how many letters have to be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
