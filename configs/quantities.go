package configs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"shaperd/internal/near"
	"shaperd/shaper"
)

// Scalars that are amounts: rates, sizes, times, numbers.

const ratePattern = `[0-9]+(\.[0-9]+)?([kmgt]i?)?(bit(/s)?|byte/s|b/s)`

// A rate is more than 0 bits per second.
type rate struct{ shaper.Rate }

func (*rate) format() format {
	return format{what: "a rate", example: "20mbit", pattern: ignoreCase(ratePattern)}
}

func (r *rate) parse(text string) (err error) {
	r.Rate, err = shaper.ParseRate(text)
	switch bare := strings.Trim(text, "0123456789") == ""; {
	case err != nil:
		return err
	case r.Rate == 0:
		return textErrorf("write what it may send", "nothing could ever be sent")
	case bare && r.Rate < 10*shaper.Kbit:
		return textErrorf(fmt.Sprintf("write %smbit, or %s if bits are meant", text, r.Rate), "it has no unit")
	case bare:
		return textErrorf(fmt.Sprintf("write %s if bits are meant", r.Rate), "it has no unit")
	}
	return nil
}

// A share is a rate, or a part of the link's rate.
type share struct {
	rate    shaper.Rate
	percent int64 // in units of 1/10,000 percent; 0 when it is a rate
	perHour int64 // of unit requests; 0 when it is a rate of bits
	text    string
}

// whole is 100 percent in units of share.percent.
const whole = 1_000_000

func (*share) format() format {
	return format{what: "a rate or a percentage", example: "20mbit",
		pattern: ignoreCase("(" + ratePattern + `|[0-9]+(\.[0-9]{1,4})?%|[0-9]+/[smh])`)}
}

func (s *share) parse(text string) error {
	s.text = text
	if n, ok, err := perHour(text); ok {
		s.perHour = n
		return err
	}
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		var r rate
		err := r.parse(text)
		s.rate = r.Rate
		return err
	}
	integer, fraction, _ := strings.Cut(number, ".")
	if len(fraction) > 4 {
		return textErrorf("write at most four decimals", "it has too many decimals")
	}
	n, err := strconv.ParseUint(integer+fraction+"0000"[len(fraction):], 10, 63)
	switch {
	case err != nil || integer == "" || strings.HasSuffix(number, "."):
		return textErrorf("write a percentage such as 40% or 12.5%", "it is no percentage")
	case n == 0:
		return textErrorf("write what it may send", "nothing could ever be sent")
	case n > whole:
		return textErrorf("write at most 100%", "it is more than the whole link")
	}
	s.percent = int64(n)
	return nil
}

// of returns the share of a link with the given rate, in whole bits per
// second: a fraction of a bit is cut off.
func (s share) of(link shaper.Rate) shaper.Rate {
	if s.percent == 0 {
		return s.rate
	}
	hi, lo := bits.Mul64(uint64(link), uint64(s.percent))
	n, _ := bits.Div64(hi, lo, whole)
	return shaper.Rate(n)
}

// A size is more than 0 bytes.
type size struct{ shaper.Size }

func (*size) format() format {
	return format{what: "a size", example: "64kb", pattern: ignoreCase(`[0-9]+(\.[0-9]+)?(b|[kmg](b|ib)?)`)}
}

func (s *size) parse(text string) (err error) {
	if s.Size, err = shaper.ParseSize(text); err == nil && strings.Trim(text, "0123456789") == "" {
		return textErrorf(fmt.Sprintf("write %s if bytes are meant", s.Size), "it has no unit")
	}
	return err
}

const maxTimeout = 365 * 24 * time.Hour

// A timeout is a positive time.
type timeout struct{ time.Duration }

func (*timeout) format() format {
	return format{what: "a time", example: "30s", pattern: `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`}
}

func (t *timeout) parse(text string) (err error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		return textErrorf(fmt.Sprintf("write %ss for seconds, or %[1]sm for minutes", text), "it has no unit")
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return textErrorf(fmt.Sprintf("write %dh", 24*n), "days are not known")
		}
	}
	if t.Duration, err = time.ParseDuration(text); err != nil {
		return textErrorf("write a number and ms, s, m or h, such as 30s or 1h30m", "it is no time")
	}
	switch {
	case t.Duration <= 0:
		return textErrorf("write a time such as 30s", "it is no time to wait")
	case t.Duration > maxTimeout:
		return textErrorf("write at most 8760h", "it is more than a year")
	}
	return nil
}

// A count is a whole number of at least 1.
type count int

func (*count) format() format {
	return format{what: "a whole number", example: "100", number: [2]int64{1, maxCount}}
}

// A queueTime is how long a packet may wait.
type queueTime struct{ time.Duration }

func (*queueTime) format() format {
	return format{what: "a time", example: "50ms", pattern: `^[0-9]+(\.[0-9]+)?(ms|s)$`}
}

func (q *queueTime) parse(text string) (err error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		return textErrorf(fmt.Sprintf("write %sms", text), "it has no unit")
	}
	if q.Duration, err = time.ParseDuration(text); err != nil || strings.ContainsAny(text, "hµun") || strings.HasSuffix(text, "m") {
		return textErrorf("write a number and ms or s, such as 50ms", "it is no time")
	}
	if q.Duration < time.Millisecond || q.Duration > 10*time.Second {
		return textErrorf("write 1ms to 10s", "no queue is useful at %s", text)
	}
	return nil
}

const maxCount = 1_000_000_000

func (c *count) parse(text string) error {
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err != nil:
		return textErrorf("write digits only, such as 100", "it is no whole number")
	case n == 0:
		return textErrorf("remove the key for no limit", "nobody could ever connect")
	case n > maxCount:
		return textErrorf("remove the key for no limit", "it is more than %d", maxCount)
	}
	*c = count(n)
	return nil
}

type priority uint8

func (*priority) format() format {
	return format{what: "a number from 0 (first) to 7 (last)", example: "3", number: [2]int64{0, 7}}
}

func (p *priority) parse(text string) error {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n > 7 {
		return textErrorf("write 0 (first) to 7 (last)", "it is not from 0 to 7")
	}
	*p = priority(n)
	return nil
}

// Overheads are bytes per IP packet on a kind of link: headers and trailers,
// and on Ethernet the gap and preamble too (38: 8+14+4+12).
var overheads = map[string]int{"docsis": 18, "ethernet": 38, "vlan": 42, "pppoe": 46}

// An overhead is bytes per IP packet.
type overhead int

func (*overhead) format() format {
	return format{what: "docsis, ethernet, pppoe, vlan or bytes", example: "ethernet", enum: []string{"docsis", "ethernet", "pppoe", "vlan"}, number: [2]int64{1, 256}}
}

func (o *overhead) parse(text string) error {
	if n, ok := overheads[text]; ok {
		*o = overhead(n)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	switch {
	case err != nil:
		return unknown(text, "kind of link", o.format().enum)
	case n < 1 || n > 256:
		return textErrorf("write 1 to 256, or remove the key", "it is not from 1 to 256 bytes")
	}
	*o = overhead(n)
	return nil
}

// unknown is the error of a word that is none of those allowed.
func unknown(text, kind string, words []string) error {
	if meant := near.Words(text, words); len(meant) > 0 {
		return textErrorf("did you mean "+orList(meant)+"?", "unknown %s", kind)
	}
	return textErrorf("write "+orList(words), "unknown %s", kind)
}

// orList lists words as in "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// ignoreCase makes a pattern for editors, whose regular expressions have no
// flags, match its letters in upper case too.
func ignoreCase(pattern string) string {
	var b strings.Builder
	inSet := false
	for i, c := range pattern {
		switch {
		case c == '[':
			inSet = true
		case c == ']':
			inSet = false
		case 'a' <= c && c <= 'z' && !inSet:
			fmt.Fprintf(&b, "[%c%c]", c, c-'a'+'A')
			continue
		case 'a' <= c && c <= 'z' && pattern[max(i-1, 0)] != '\\':
			fmt.Fprintf(&b, "%c%c", c, c-'a'+'A')
			continue
		}
		b.WriteRune(c)
	}
	return "^" + b.String() + "$"
}
