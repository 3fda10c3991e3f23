package classify

import (
	"reflect"
	"testing"
)

func TestSides(t *testing.T) {
	one := func(first, last uint16) []PortRange { return []PortRange{{first, last}} }
	for _, tt := range []struct {
		match Match
		want  [][2][]PortRange
	}{
		{Match{}, [][2][]PortRange{{nil, nil}}},
		{Match{SPort: one(1, 9)}, [][2][]PortRange{{one(1, 9), nil}}},
		{Match{Port: one(80, 90)}, [][2][]PortRange{{one(80, 90), nil}, {nil, one(80, 90)}}},
		{Match{Port: one(80, 90), DPort: one(85, 99)}, [][2][]PortRange{{one(80, 90), one(85, 99)}, {nil, one(85, 90)}}},
		{Match{Port: one(80, 90), SPort: one(1, 9), DPort: one(85, 99)}, [][2][]PortRange{{one(1, 9), one(85, 90)}}},
		{Match{Port: one(80, 90), SPort: one(1, 9), DPort: one(1, 9)}, nil},
	} {
		if got := tt.match.Sides(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.match, got, tt.want)
		}
	}
}
