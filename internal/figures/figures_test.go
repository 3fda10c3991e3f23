package figures

import (
	"testing"
	"time"
)

func TestThreeDigitsAndAUnit(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Bits(0), "0bit"},
		{Bits(999.6), "1.00kbit"},
		{Bits(62_340_000), "62.3mbit"},
		{Bits(99_960_000), "100mbit"},
		{Bytes(1023), "1023B"},
		{Bytes(1536), "1.50KiB"},
		{Count(7), "7"},
		{Count(12_340), "12.3 k"},
		{Percent(0, 5), "-"},
		{Percent(1, 3), "33%"},
		{Bar(0.5, 0, 4), ""},
		{Bar(5, 16, 4), "█▎··"},
		{Bar(99, 16, 4), "████"},
		{Age(59 * time.Second), "59s"},
		{Age(61 * time.Second), "1m01s"},
		{Age(47*time.Hour + 5*time.Minute), "47h05m"},
		{Age(49 * time.Hour), "2d1h"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
