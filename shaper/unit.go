package shaper

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A UnitError says why a text is no Rate or no Size, and what to write instead.
type UnitError struct {
	Kind   string // "rate" or "size"
	Text   string // what was given
	Reason string // what is wrong with it
	Hint   string // the cure: "write 10mbit for bits or 10mbyte/s for bytes"
}

func (e *UnitError) Error() string {
	return fmt.Sprintf("%s %q: %s; %s", e.Kind, e.Text, e.Reason, e.Hint)
}

// A quantity is what the two kinds of number with a unit differ in.
type quantity struct {
	kind    string
	whole   string // what may not be split
	example string
	// factor returns what one of the unit is worth, or why it is refused and what to write for this number.
	factor func(number, unit string) (f int64, reason, hint string)
	format func(int64) string
}

// maxText bounds the work on a hostile text. It has room for all digits of the least tibit fraction.
const maxText = 100

// parse reads a plain decimal number with a unit right behind it. The result is exact or an error.
func (q *quantity) parse(text string) (int64, error) {
	refuse := func(reason, hint string) (int64, error) {
		return 0, &UnitError{Kind: q.kind, Text: text, Reason: reason, Hint: hint}
	}
	example := "write a number and a unit, as in " + q.example
	switch {
	case text == "":
		return refuse("it is empty", example)
	case strings.ContainsAny(text, " \t\r\n"):
		return refuse("it contains a space", "write the unit right behind the number, as in "+q.example)
	case text[0] == '-':
		return refuse("it is negative", example)
	case len(text) > maxText:
		return refuse("it is too long", example)
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(text)
	}
	number, unit := text[:end], text[end:]
	integer, fraction, dotted := strings.Cut(number, ".")
	if integer == "" || strings.Contains(fraction, ".") || dotted && fraction == "" {
		return refuse("it does not begin with a decimal number", example)
	}
	if unit == "%" {
		return refuse("a percentage has nothing here to be a part of", example)
	}
	f, reason, hint := q.factor(number, unit)
	if reason != "" {
		return refuse(reason, hint)
	}

	v, _ := new(big.Rat).SetString(number) // digits with at most one dot: cannot fail
	v.Mul(v, new(big.Rat).SetInt64(f))
	below := new(big.Int).Quo(v.Num(), v.Denom())
	if !below.IsInt64() || !v.IsInt() && below.Int64() == math.MaxInt64 {
		return refuse("it is too large", "the largest is "+q.format(math.MaxInt64))
	}
	n := below.Int64()
	if !v.IsInt() {
		return refuse("it is not a whole number of "+q.whole,
			fmt.Sprintf("the nearest are %s and %s", q.format(n), q.format(n+1)))
	}
	return n, nil
}

// formatUnits writes n in the largest unit that divides it; units go up from the base unit in steps of step.
func formatUnits(n, step int64, units ...string) string {
	i := 0
	for n != 0 && i < len(units)-1 && n%step == 0 {
		n /= step
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}
