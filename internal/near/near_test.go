package near_test

import (
	"strings"
	"testing"

	"shaperd/internal/near"
)

func TestMisspellingsAreRecognised(t *testing.T) {
	keys := []string{"rate", "ceil", "burst", "mode", "priority", "default", "port", "sport", "dport"}
	for text, want := range map[string]string{
		"ciel": "ceil", "cei": "ceil", "Rate": "rate", "rates": "rate", "prioritiy": "priority", "brust": "burst", "defautl": "default",
		"xport": "port sport dport", "frobnicate": "", "x": "", "": "", "ra": "", strings.Repeat("rate", 1<<20): "",
	} {
		if got := strings.Join(near.Words(text, keys), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestHintAsksOrListsWhatThereIs(t *testing.T) {
	keys := []string{"rate", "ceil", "port", "sport", "dport"}
	many := strings.Fields(strings.Repeat("rate ", 20))
	for _, tt := range []struct {
		text  string
		words []string
		want  string
	}{
		{"ciel", keys, "; did you mean ceil?"},
		{"prt", keys[:3], "; did you mean port?"},
		{"xport", keys, "; did you mean port, sport or dport?"},
		{"frobnicate", keys[:2], "; known are rate, ceil"},
		{"frobnicate", many, "; known are " + strings.Join(many[:12], ", ") + " and others"},
		{"frobnicate", nil, ""},
	} {
		if got := near.Hint(tt.text, tt.words); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
