package configs

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxBytes = 1 << 20 // of a file; 10,000 rules take half of it
	maxDepth = 64      // of nested lists and mappings
	maxKeys  = 5000    // of a mapping
)

// A node is a value of the file.
type node struct {
	place
	key    place // of its key in a mapping
	kind   kind
	text   string  // of a scalar
	items  []*node // of a list
	fields []field // of a mapping
}

type field struct{ key, value *node }

type kind string

const (
	scalarNode  kind = "a single value"
	listNode    kind = "a list"
	mappingNode kind = "a mapping"
	emptyNode   kind = "empty"   // null
	badNode     kind = "refused" // reported already
)

// readYAML turns the file's text into nodes; nil after a mistake that leaves none.
func (r *report) readYAML(data []byte) *node {
	text, ok := r.readText(data)
	if !ok {
		return nil
	}
	tokens := lexer.Tokenize(text)
	if !r.bounded(tokens) {
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		r.wrongSyntax(err)
		return nil
	}
	var root *node
	for _, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil:
		case *ast.DirectiveNode:
			r.wrong(placeOf(body.GetToken()), "remove the line", "directives of YAML are not supported")
			return nil
		default:
			if root != nil {
				at := placeOf(body.GetToken())
				if doc.Start != nil {
					at = placeOf(doc.Start)
				}
				r.wrong(at, "keep one, or put the others into files of their own", "a second document: a policy file is one YAML document")
				return root
			}
			root = r.convert(body)
		}
	}
	if root == nil {
		r.wrong(place{1, 1, 1}, `begin with the output of "shaperd config reference"`, "the file is empty")
	}
	return root
}

// readText checks what must hold of any text file, and splits it into lines.
func (r *report) readText(data []byte) (text string, ok bool) {
	start := place{1, 1, 1}
	if len(data) > maxBytes {
		r.wrong(start, "is it a policy?", "the file has %d bytes, more than %d", len(data), maxBytes)
		return "", false
	}
	text = strings.TrimPrefix(string(data), "\ufeff") // a byte order mark says nothing in UTF-8
	text = strings.ReplaceAll(text, "\r\n", "\n")
	r.lines = strings.Split(text, "\n")
	for i, line := range r.lines {
		column := 0
		for at, c := range line {
			column++
			if c == utf8.RuneError && !strings.HasPrefix(line[at:], "\ufffd") {
				r.wrong(place{i + 1, column, 1}, "save the file as UTF-8", "the byte 0x%02x is not UTF-8", line[at])
				return "", false
			}
			if c != '\t' && unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c == '\ufeff' {
				r.wrong(place{i + 1, column, 1}, "remove it", "the control character %U may not be in a policy", c)
				return "", false
			}
		}
	}
	return text, true
}

// bounded refuses nesting that would exhaust the stack of whoever follows it,
// and mappings that the YAML library would take minutes for.
func (r *report) bounded(tokens token.Tokens) bool {
	type block struct{ column, keys int }
	var open []block // each further to the right than the one before
	flow := 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.CommentType:
			continue
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
		if flow <= 0 {
			b := block{column: tk.Position.Column}
			for len(open) > 0 && open[len(open)-1].column >= b.column {
				if last := open[len(open)-1]; last.column == b.column {
					b.keys = last.keys
				}
				open = open[:len(open)-1]
			}
			if tk.Next != nil && tk.Next.Type == token.MappingValueType {
				b.keys++
			}
			if b.keys > maxKeys {
				r.wrong(placeOf(tk), "is it a policy?", "a mapping with more than %d keys", maxKeys)
				return false
			}
			open = append(open, b)
		}
		if len(open)+max(flow, 0) > maxDepth {
			r.wrong(placeOf(tk), "is it a policy?", "nested more than %d deep", maxDepth)
			return false
		}
	}
	return true
}

// parseTokens keeps a fault of the YAML library from ending the program.
func parseTokens(tokens token.Tokens) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// convert returns n without what is particular to YAML.
func (r *report) convert(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n, n.Values)
	case *ast.MappingValueNode:
		return r.mapping(n, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		list := &node{place: placeOf(n.GetToken()), kind: listNode}
		for _, item := range n.Values {
			list.items = append(list.items, r.convert(item))
		}
		return list
	case *ast.NullNode:
		return &node{place: placeOf(n.GetToken()), kind: emptyNode}
	case *ast.LiteralNode:
		return &node{place: placeOf(n.GetToken()), kind: scalarNode, text: n.Value.Value}
	case *ast.StringNode:
		return &node{place: placeOf(n.GetToken()), kind: scalarNode, text: n.Value}
	case ast.ScalarNode: // the text as written: 010 stays 010
		if tk := n.GetToken(); tk.Type != token.MergeKeyType && tk.Type != token.AnchorType && tk.Type != token.AliasType && tk.Type != token.TagType {
			return &node{place: placeOf(tk), kind: scalarNode, text: tk.Value}
		}
	}
	bad := &node{place: placeOf(n.GetToken()), kind: badNode}
	r.wrong(bad.place, "write the value out", "anchors, aliases, merge keys and tags of YAML are not supported")
	return bad
}

func (r *report) mapping(n ast.Node, values []*ast.MappingValueNode) *node {
	m := &node{place: placeOf(n.GetToken()), kind: mappingNode}
	for i, v := range values {
		var key ast.Node = v.Key
		if explicit, ok := key.(*ast.MappingKeyNode); ok {
			key = explicit.Value
		}
		f := field{key: r.convert(key), value: &node{kind: badNode}}
		if f.key.kind != badNode {
			f.value = r.convert(v.Value)
		}
		if f.key.kind == mappingNode || f.key.kind == listNode || f.key.kind == emptyNode {
			r.wrong(f.key.place, "write a word", "a key is one word, not %s", f.key.kind)
			f.key.kind = badNode
		}
		if i == 0 && n.GetToken().Type != token.MappingStartType {
			m.place = f.key.place
		}
		f.value.key = f.key.place
		m.fields = append(m.fields, f)
	}
	return m
}

func placeOf(tk *token.Token) place {
	text, _, _ := strings.Cut(strings.TrimSpace(tk.Origin), "\n")
	return place{max(tk.Position.Line, 1), max(tk.Position.Column, 1), max(utf8.RuneCountInString(text), 1)}
}

// syntaxCures are for what people trip over most, by a part of the library's message.
var syntaxCures = []struct{ part, message, cure string }{
	{"found character '\t'", "a tab in the indentation", "indent with spaces"},
	{"tab character", "a tab in the indentation", "indent with spaces"},
	{"end token '}'", "this { is never closed", "add the } that belongs to it"},
	{"end token ']'", "this [ is never closed", "add the ] that belongs to it"},
	{"',' or ']'", "the list above is not closed here", "add a comma between its values, or the ] at its end"},
	{"',' or '}'", "the mapping above is not closed here", "add a comma between its entries, or the } at its end"},
	{"reserved character", "@ and ` may not begin a value", "put it in quotes"},
	{"mapping value is not allowed", "a second colon in one entry", `put a value that contains ": " in quotes`},
	{"non-map value", "this is no \"key: value\"", "check the indentation and the colon"},
	{"value is not allowed", "this does not belong here", "check the indentation; a value that begins with [ { * & ! or % is written in quotes"},
	{"invalid key", "a colon without a word before it", `write "key: value"; an address that begins with a colon is written in quotes`},
	{"quoted", "this text is never closed", "add the quote at its end"},
}

func (r *report) wrongSyntax(err error) {
	var at = place{1, 1, 1}
	message := err.Error()
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		at, message = placeOf(syntax.Token), syntax.Message
	}
	if r.amongUsers(at.line) { // what makes it bad YAML may be a password
		r.blotText(place{at.line, at.column, maxBytes})
		at.width = 1
	}
	for _, c := range syntaxCures {
		if strings.Contains(message, c.part) {
			r.wrong(at, c.cure, "%s", c.message)
			return
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	r.wrong(at, "check the indentation, colons and quotes", "not valid YAML: %s", message)
}

// amongUsers reports whether a line has users, or is indented below them.
func (r *report) amongUsers(line int) bool {
	if line > len(r.lines) {
		return false
	}
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	own := indent(r.lines[line-1])
	for i := line - 1; i >= 0; i-- {
		if text := r.lines[i]; i == line-1 || indent(text) < own && strings.TrimSpace(text) != "" {
			if strings.Contains(text, "users") {
				return true
			}
			own = min(own, indent(text))
		}
	}
	return false
}
