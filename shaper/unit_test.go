package shaper

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRateIsReadInTheUnitsOfTc(t *testing.T) {
	for text, want := range map[string]Rate{
		"0": 0, "0bit": 0, "8000": 8 * Kbit, "1bit": 1, "8kbit": 8 * Kbit, "10mbit": 10 * Mbit, "10Mbit": 10 * Mbit, "10MBIT": 10 * Mbit,
		"400gbit": 400 * Gbit, "3tbit": 3 * Tbit, "007mbit": 7 * Mbit, "10mbit/s": 10 * Mbit,
		"1kibit": 1 << 10, "1mibit": 1 << 20, "1Gibit": 1 << 30, "1tibit": 1 << 40,
		"1.5mbit": 1500 * Kbit, "0.001kbit": 1, "1.50000000000000000000000000mbit": 1500 * Kbit,
		"0.0000000000009094947017729282379150390625tibit": 1,
		"9223372036854775807bit":                          math.MaxInt64, "9223372.036854775807tbit": math.MaxInt64,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestRateInBytesIsSpelledOutAndDecimal(t *testing.T) {
	for text, want := range map[string]Rate{
		"1byte/s": 8, "1kbyte/s": 8 * Kbit, "1mbyte/s": 8 * Mbit, "1Mbyte/s": 8 * Mbit, "1gbyte/s": 8 * Gbit, "1tbyte/s": 8 * Tbit,
		"1kb/s": 8 * Kbit, "1mb/s": 8 * Mbit, "1MB/s": 8 * Mbit, "1kB/s": 8 * Kbit, "1B/s": 8, "0.125byte/s": 1,
		"1kibyte/s": 8 << 10, "1mibyte/s": 8 << 20, "1mib/s": 8 << 20, "1MiB/s": 8 << 20,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestSizeIsReadInTheUnitsOfTc(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "0b": 0, "1514": 1514, "1514b": 1514, "10k": 10 * KiB, "10K": 10 * KiB, "10kb": 10 * KiB, "10KB": 10 * KiB, "10kib": 10 * KiB,
		"10KiB": 10 * KiB, "2m": 2 * MiB, "2mb": 2 * MiB, "2MiB": 2 * MiB, "3g": 3 * GiB, "3gb": 3 * GiB, "3gib": 3 * GiB,
		"1.5k": 1536, "9223372036854775807": math.MaxInt64, "8589934591.999999999068677425384521484375gb": math.MaxInt64,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestWhatIsNoRateIsRefusedWithTheCure(t *testing.T) {
	const unknown = "use bit, kbit, mbit, gbit, tbit, or byte/s, kbyte/s, mbyte/s for bytes"
	const example = "write a number and a unit, as in 10mbit"
	for text, want := range map[string]string{
		"10mbps":  `rate "10mbps": "mbps" means bits to some tools and bytes to others; write 10mbit for bits or 10mbyte/s for bytes`,
		"1.5Mbps": `rate "1.5Mbps": "Mbps" means bits to some tools and bytes to others; write 1.5mbit for bits or 1.5mbyte/s for bytes`,
		"8kbps":   `rate "8kbps": "kbps" means bits to some tools and bytes to others; write 8kbit for bits or 8kbyte/s for bytes`,
		"1gbps":   `rate "1gbps": "gbps" means bits to some tools and bytes to others; write 1gbit for bits or 1gbyte/s for bytes`,
		"9bps":    `rate "9bps": "bps" means bits to some tools and bytes to others; write 9bit for bits or 9byte/s for bytes`,
		"1mibps":  `rate "1mibps": "mibps" means bits to some tools and bytes to others; write 1mibit for bits or 1mibyte/s for bytes`,
		"5Mb":     `rate "5Mb": "Mb" means bits to some tools and bytes to others; write 5mbit for bits or 5mbyte/s for bytes`,
		"5MB":     `rate "5MB": "MB" means bits to some tools and bytes to others; write 5mbit for bits or 5mbyte/s for bytes`,
		"5mb":     `rate "5mb": "mb" means bits to some tools and bytes to others; write 5mbit for bits or 5mbyte/s for bytes`,
		"5Mb/s":   `rate "5Mb/s": "Mb/s" means bits to some tools and bytes to others; write 5mbit for bits or 5mbyte/s for bytes`,
		"5Mib/s":  `rate "5Mib/s": "Mib/s" means bits to some tools and bytes to others; write 5mibit for bits or 5mibyte/s for bytes`,
		"5b/s":    `rate "5b/s": "b/s" means bits to some tools and bytes to others; write 5bit for bits or 5byte/s for bytes`,
		"5m":      `rate "5m": "m" means bits to some tools and bytes to others; write 5mbit for bits or 5mbyte/s for bytes`,
		"5b":      `rate "5b": "b" means bits to some tools and bytes to others; write 5bit for bits or 5byte/s for bytes`,

		"5mbyte":  `rate "5mbyte": unknown unit "mbyte"; ` + unknown,
		"5mbits":  `rate "5mbits": unknown unit "mbits"; ` + unknown,
		"5pbit":   `rate "5pbit": unknown unit "pbit"; ` + unknown,
		"1e3bit":  `rate "1e3bit": unknown unit "e3bit"; ` + unknown,
		"0x10":    `rate "0x10": unknown unit "x10"; ` + unknown,
		"1_000":   `rate "1_000": unknown unit "_000"; ` + unknown,
		"1,5mbit": `rate "1,5mbit": unknown unit ",5mbit"; ` + unknown,

		"0.0001kbit": `rate "0.0001kbit": it is not a whole number of bits per second; the nearest are 0bit and 1bit`,
		"1.0001kbit": `rate "1.0001kbit": it is not a whole number of bits per second; the nearest are 1kbit and 1001bit`,
		"0.1":        `rate "0.1": it is not a whole number of bits per second; the nearest are 0bit and 1bit`,

		"9223372036854775808bit":   `rate "9223372036854775808bit": it is too large; the largest is 9223372036854775807bit`,
		"9223372036854775807.5bit": `rate "9223372036854775807.5bit": it is too large; the largest is 9223372036854775807bit`,
		"9999999tibyte/s":          `rate "9999999tibyte/s": it is too large; the largest is 9223372036854775807bit`,

		"":        `rate "": it is empty; ` + example,
		"10 mbit": `rate "10 mbit": it contains a space; write the unit right behind the number, as in 10mbit`,
		" 1mbit":  `rate " 1mbit": it contains a space; write the unit right behind the number, as in 10mbit`,
		"-5mbit":  `rate "-5mbit": it is negative; ` + example,
		"+5mbit":  `rate "+5mbit": it does not begin with a decimal number; ` + example,
		"NaN":     `rate "NaN": it does not begin with a decimal number; ` + example,
		"inf":     `rate "inf": it does not begin with a decimal number; ` + example,
		"mbit":    `rate "mbit": it does not begin with a decimal number; ` + example,
		".5mbit":  `rate ".5mbit": it does not begin with a decimal number; ` + example,
		"5.mbit":  `rate "5.mbit": it does not begin with a decimal number; ` + example,
		"1.2.3":   `rate "1.2.3": it does not begin with a decimal number; ` + example,
		"٣mbit":   `rate "٣mbit": it does not begin with a decimal number; ` + example,
		"40%":     `rate "40%": a percentage has nothing here to be a part of; ` + example,
	} {
		_, err := ParseRate(text)
		checkUnitError(t, err, "rate", text, want)
	}
	long := strings.Repeat("1", 1<<20)
	_, err := ParseRate(long)
	checkUnitError(t, err, "rate", long, `rate "`+long+`": it is too long; `+example)
}

func TestWhatIsNoSizeIsRefusedWithTheCure(t *testing.T) {
	const units = "use b, kb, mb, gb (powers of 1024) or kib, mib, gib"
	for text, want := range map[string]string{
		"10Kbit":              `size "10Kbit": "kbit" counts bits, a size counts bytes; ` + units,
		"8bit":                `size "8bit": "bit" counts bits, a size counts bytes; ` + units,
		"10kb/s":              `size "10kb/s": unknown unit "kb/s"; ` + units,
		"10ki":                `size "10ki": unknown unit "ki"; ` + units,
		"1tb":                 `size "1tb": unknown unit "tb"; ` + units,
		"1.5b":                `size "1.5b": it is not a whole number of bytes; the nearest are 1b and 2b`,
		"0.0001":              `size "0.0001": it is not a whole number of bytes; the nearest are 0b and 1b`,
		"9223372036854775808": `size "9223372036854775808": it is too large; the largest is 9223372036854775807b`,
		"8589934592gb":        `size "8589934592gb": it is too large; the largest is 9223372036854775807b`,
		"":                    `size "": it is empty; write a number and a unit, as in 64kb`,
		"64 kb":               `size "64 kb": it contains a space; write the unit right behind the number, as in 64kb`,
		"-1":                  `size "-1": it is negative; write a number and a unit, as in 64kb`,
		"NaN":                 `size "NaN": it does not begin with a decimal number; write a number and a unit, as in 64kb`,
		"5%":                  `size "5%": a percentage has nothing here to be a part of; write a number and a unit, as in 64kb`,
	} {
		_, err := ParseSize(text)
		checkUnitError(t, err, "size", text, want)
	}
}

func checkUnitError(t *testing.T, err error, kind, text, want string) {
	t.Helper()
	var unit *UnitError
	if !errors.As(err, &unit) || unit.Kind != kind || unit.Text != text {
		t.Errorf("%q: %#v is not its *UnitError", text, err)
		return
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestStringIsTheLargestUnitThatDivides(t *testing.T) {
	for want, got := range map[string]string{
		"0bit": Rate(0).String(), "1bit": Bit.String(), "999bit": Rate(999).String(), "1kbit": Kbit.String(), "1001bit": (Kbit + 1).String(),
		"1500kbit": (1500 * Kbit).String(), "400gbit": (400 * Gbit).String(), "5000tbit": (5000 * Tbit).String(), "-5bit": Rate(-5).String(),
		"0b": Size(0).String(), "1514b": Size(1514).String(), "64kib": (64 * KiB).String(), "1536b": Size(1536).String(),
		"1mib": MiB.String(), "2048gib": (2048 * GiB).String(),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	var r Rate
	if text, err := (1500 * Kbit).MarshalText(); err != nil || r.UnmarshalText(text) != nil || r != 1500*Kbit {
		t.Errorf("rate through %q: %d, %v", text, r, err)
	}
	var s Size
	if text, err := (64 * KiB).MarshalText(); err != nil || s.UnmarshalText(text) != nil || s != 64*KiB {
		t.Errorf("size through %q: %d, %v", text, s, err)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"", "8000", "1.5mbit", "10mbps", "1mb/s", "0.0001kbit", "1tibyte/s", "-1", "٣", "\xff"} {
		f.Add(s, int64(1500))
	}
	f.Fuzz(func(t *testing.T, text string, n int64) { roundTrip(t, ParseRate, text, n) })
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"", "1514", "1.5k", "64kb", "10kbit", "3gib", "-1", "٣", "\xff"} {
		f.Add(s, int64(65536))
	}
	f.Fuzz(func(t *testing.T, text string, n int64) { roundTrip(t, ParseSize, text, n) })
}

// roundTrip checks that every value reads back from its own text, both n and what text, if accepted, stands for.
func roundTrip[Q interface {
	~int64
	String() string
}](t *testing.T, parse func(string) (Q, error), text string, n int64) {
	values := []Q{Q(max(n, 0))}
	if v, err := parse(text); err == nil {
		values = append(values, v)
	} else if unit := new(UnitError); !errors.As(err, &unit) || unit.Text != text || unit.Hint == "" {
		t.Fatalf("%q: %#v is not its *UnitError with a cure", text, err)
	}
	for _, v := range values {
		if back, err := parse(v.String()); v < 0 || err != nil || back != v {
			t.Fatalf("%d is written %s and read as %d, %v", v, v, back, err)
		}
	}
}
