package near

import "strings"

// Hint ends a message about a word that is none of the words: it asks for what is
// most likely meant, or else says which there are.
func Hint(text string, words []string) string {
	if meant := Words(text, words); len(meant) > 0 {
		last := len(meant) - 1
		return "; did you mean " + strings.TrimPrefix(strings.Join(meant[:last], ", ")+" or "+meant[last], " or ") + "?"
	}
	const most = 12 // more is no help
	switch listed := strings.Join(words[:min(len(words), most)], ", "); {
	case listed == "":
		return ""
	case len(words) > most:
		return "; known are " + listed + " and others"
	default:
		return "; known are " + listed
	}
}
