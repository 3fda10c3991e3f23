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
