package configs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"shaperd/shaper"
)

// The file is decoded into the structs of schema.go. Their fields are built
// from these types, which keep where each value stands.

// A value is one value: a scalar, or a struct whose fields have keys.
type value[T any] struct {
	v     T
	at    *node // nil when the file does not have it
	wrong bool  // reported; v means nothing
}

// A list is written as a list only.
type list[T any] struct {
	all   []value[T]
	at    *node
	wrong bool // the list itself, not its values
}

// A some is one value, or a list of them.
type some[T any] struct{ list[T] }

// logins is a mapping of users to their passwords.
type logins struct {
	all []login
	at  *node
}

type login struct {
	user     value[user]
	password value[password]
}

// A scalar reads itself from the file's text. The error says what is wrong with
// the text, as a *textError where it knows a cure.
type scalar interface {
	parse(text string) error
	format() format
}

// A format is how a scalar is written.
type format struct {
	what    string   // "a rate": for people
	example string   // one that is right
	pattern string   // of what is right, for editors; they see a bit less than parse does
	enum    []string // all that is right, instead of a pattern
	number  [2]int64 // the range if it may be written as a YAML number; 0, 0 if not
}

// A textError is what is wrong with a text, and what would be right.
type textError struct{ reason, cure string }

func (e *textError) Error() string { return e.reason + "; " + e.cure }

func textErrorf(cure, format string, args ...any) error {
	return &textError{fmt.Sprintf(format, args...), cure}
}

// A decoder is what the fields of the structs are built from.
type decoder interface {
	decode(r *report, n *node, key string)
	given() bool
	// spoil says that the value is there, under a wrong key: nothing follows from its absence.
	spoil(n *node)
	// sample is a value that is right.
	sample() string
}

// given reports whether the file has the value, right or wrong.
func (v *value[T]) given() bool { return v.at != nil }

// ok reports whether v has a meaning.
func (v *value[T]) ok() bool { return v.at != nil && !v.wrong }

func (v *value[T]) spoil(n *node) { v.at, v.wrong = n, true }

func (v *value[T]) sample() string {
	if s, ok := any(&v.v).(scalar); ok {
		return s.format().example
	}
	return "…"
}

func (v *value[T]) decode(r *report, n *node, key string) {
	v.at = n
	s, isScalar := any(&v.v).(scalar)
	if !isScalar {
		v.wrong = !r.object(n, reflect.ValueOf(&v.v).Elem(), key)
		return
	}
	f := s.format()
	cure := fmt.Sprintf("write %s, such as %s: %s", f.what, key, f.example)
	if n.kind == mappingNode && len(n.fields) > 0 && n.fields[0].key.place == n.place { // without braces: an address, maybe
		cure += "; a text with colons is written in quotes"
	}
	if v.wrong = !r.expect(n, scalarNode, key, cure); v.wrong {
		return
	}
	if err := s.parse(n.text); err != nil {
		v.wrong = true
		reason, cure := reasonOf(err)
		if cure == "" {
			cure = fmt.Sprintf("write %s, such as %s", f.what, f.example)
		}
		text := " " + quote(n.text)
		if secret, ok := s.(interface{ secret(text string) bool }); ok && secret.secret(n.text) {
			r.blot(n)
			text = ""
		}
		r.wrong(n.place, cure, "%s%s: %s", key, text, reason)
	}
}

// reasonOf splits an error into what is wrong and the cure, "" if it names none.
func reasonOf(err error) (reason, cure string) {
	var text *textError
	var unit *shaper.UnitError
	switch {
	case errors.As(err, &text):
		return text.reason, text.cure
	case errors.As(err, &unit):
		return unit.Reason, unit.Hint
	}
	return err.Error(), ""
}

// quote quotes what the user wrote, within bounds.
func quote(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// oneOf names what the lists hold.
var oneOf = map[string]string{"schedule": "entry of schedule", "classes": "class", "interfaces": "interface", "relays": "relay"}

func (l *list[T]) given() bool    { return l.at != nil }
func (l *list[T]) spoil(n *node)  { l.at, l.wrong = n, true }
func (l *list[T]) sample() string { return new(value[T]).sample() }

func (l *list[T]) decode(r *report, n *node, key string) {
	l.at = n
	if l.wrong = !r.expect(n, listNode, key, fmt.Sprintf(`begin each of the %s with "- "`, key)); !l.wrong {
		l.decodeAll(r, n.items, oneOf[key])
	}
}

func (l *list[T]) decodeAll(r *report, items []*node, key string) {
	l.all = make([]value[T], len(items))
	for i, n := range items {
		l.all[i].decode(r, n, key)
	}
}

func (s *some[T]) decode(r *report, n *node, key string) {
	if s.at = n; n.kind != listNode {
		s.decodeAll(r, []*node{n}, key)
		return
	}
	if s.wrong = !r.expect(n, listNode, key, ""); !s.wrong {
		s.decodeAll(r, n.items, key)
	}
}

// A linkRate is a link's rate, alone or in a mapping with a schedule.
type linkRate struct{ value[linkSpec] }

func (l *linkRate) sample() string { return l.v.Rate.sample() }

func (l *linkRate) decode(r *report, n *node, key string) {
	if n.kind == mappingNode {
		l.value.decode(r, n, key)
		l.wrong = l.wrong || l.v.Rate.wrong
		return
	}
	l.v.Rate.decode(r, n, key)
	l.at, l.wrong = n, l.v.Rate.wrong
}

// values returns the values of a list that mean something.
func (l *list[T]) values() (all []T) {
	for i := range l.all {
		if l.all[i].ok() {
			all = append(all, l.all[i].v)
		}
	}
	return all
}

// sound reports whether all values of the list mean something.
func (l *list[T]) sound() bool { return !l.wrong && len(l.values()) == len(l.all) }

func (l *logins) given() bool    { return l.at != nil }
func (l *logins) spoil(n *node)  { l.at = n }
func (l *logins) sample() string { return "{alice: correct horse}" }

func (l *logins) decode(r *report, n *node, key string) {
	l.at = n
	r.blot(n)
	if !r.expect(n, mappingNode, key, "write each as a name and a password, such as "+key+": "+l.sample()) {
		return
	}
	r.eachField(n, func(f field) {
		var one login
		one.user.decode(r, f.key, key)
		one.password.decode(r, f.value, "password of "+quote(f.key.text))
		l.all = append(l.all, one)
	})
}

// expect reports n if it is not of the kind k, or has nothing in it.
func (r *report) expect(n *node, k kind, key, cure string) bool {
	switch {
	case n.kind == badNode:
		return false
	case n.kind == emptyNode, n.kind == listNode && len(n.items) == 0, n.kind == mappingNode && len(n.fields) == 0:
		at := n.place
		if n.kind == emptyNode && n.key.line > 0 {
			at = n.key
		}
		r.wrong(at, "give it one, or remove the key", "%s has no value", key)
		return false
	case n.kind != k:
		r.wrong(n.place, cure, "%s is %s, not %s", key, n.kind, k)
		return false
	}
	return true
}

// eachField calls use with the fields of a mapping, and reports keys that are given twice.
func (r *report) eachField(n *node, use func(field)) {
	first := map[string]*node{}
	for _, f := range n.fields {
		if f.key.kind == badNode {
			continue
		}
		if before := first[f.key.text]; before != nil {
			r.wrong(f.key.place, "keep one of them", "the key %s is given twice, first on line %d", quote(f.key.text), before.line)
			continue
		}
		first[f.key.text] = f.key
		use(f)
	}
}

// object decodes a mapping into the struct s, whose fields have their key in
// their tag; ",required" follows it where one has to be given.
func (r *report) object(n *node, s reflect.Value, what string) bool {
	keys := keysOf(s.Type())
	if !r.expect(n, mappingNode, what, "write its keys, one \"key: value\" each: "+strings.Join(keys, ", ")) {
		return false
	}
	fields := map[string]decoder{}
	for i, key := range keys {
		fields[key] = s.Field(i).Addr().Interface().(decoder)
	}
	r.eachField(n, func(f field) {
		if d := fields[f.key.text]; d != nil {
			d.decode(r, f.value, f.key.text)
			return
		}
		meant, cure := suggest(f.key.text, keys)
		for _, m := range meant {
			if !fields[m].given() {
				fields[m].spoil(f.value)
			}
		}
		r.wrong(f.key.place, cure, "unknown key %s in %s", quote(f.key.text), what)
	})
	for i, key := range keys {
		if _, required := tagOf(s.Type().Field(i)); required && !fields[key].given() {
			r.wrong(n.place, fmt.Sprintf("add %s, such as %s: %s", key, key, fields[key].sample()), "%s has no %s", what, key)
		}
	}
	return true
}

func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _ = tagOf(t.Field(i))
	}
	return keys
}

func tagOf(f reflect.StructField) (key string, required bool) {
	return strings.CutSuffix(f.Tag.Get("key"), ",required")
}
