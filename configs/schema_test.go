package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// object is a JSON object.
type object = map[string]any

// A schemaWriter makes the JSON Schema of the structs in schema.go.
type schemaWriter struct {
	comments    map[string]string // by "struct.Field"
	definitions object
}

// schemed is what the fields of the structs are, for a schemaWriter.
type schemed interface {
	schema(w *schemaWriter) object
	// cover marks the fields, as "struct.Field", that the file has.
	cover(has map[string]bool)
}

func (v *value[T]) schema(w *schemaWriter) object {
	if s, ok := any(&v.v).(scalar); ok {
		return s.format().schema()
	}
	return w.object(reflect.TypeFor[T]())
}

func (l *list[T]) schema(w *schemaWriter) object {
	return object{"type": "array", "minItems": 1, "items": new(value[T]).schema(w)}
}

func (s *some[T]) schema(w *schemaWriter) object {
	return object{"anyOf": []any{new(value[T]).schema(w), s.list.schema(w)}}
}

func (l *linkRate) schema(w *schemaWriter) object {
	return object{"anyOf": []any{new(value[rate]).schema(w), new(value[linkSpec]).schema(w)}}
}

func (l *logins) schema(w *schemaWriter) object {
	return object{"type": "object", "minProperties": 1, "additionalProperties": new(value[password]).schema(w)}
}

func (v *value[T]) cover(has map[string]bool) {
	if _, ok := any(&v.v).(scalar); ok {
		return
	}
	s := reflect.ValueOf(&v.v).Elem()
	for i := range s.NumField() {
		name := s.Type().Name() + "." + s.Type().Field(i).Name
		field := s.Field(i).Addr().Interface()
		has[name] = has[name] || field.(decoder).given()
		field.(schemed).cover(has)
	}
}

func (l *list[T]) cover(has map[string]bool) {
	for i := range l.all {
		l.all[i].cover(has)
	}
}

func (l *logins) cover(map[string]bool) {}

func (f format) schema() object {
	s := object{"examples": []any{strings.Trim(f.example, `"`)}}
	number := object{"type": "integer", "minimum": f.number[0], "maximum": f.number[1]}
	isNumber := f.number != [2]int64{}
	switch {
	case slices.Equal(f.enum, []string{"true", "false"}):
		return object{"type": "boolean"}
	case f.enum != nil && isNumber:
		return object{"anyOf": []any{object{"enum": f.enum}, number}}
	case f.enum != nil:
		return object{"enum": f.enum}
	case f.pattern == "" && isNumber:
		return number
	case f.pattern == "":
		s["type"] = []any{"string", "number"}
	case isNumber:
		s["type"], s["pattern"] = []any{"string", "integer"}, f.pattern
		s["minimum"], s["maximum"] = f.number[0], f.number[1]
	default:
		s["type"], s["pattern"] = "string", f.pattern
	}
	return s
}

// object returns a reference to the definition of a struct, which it adds.
func (w *schemaWriter) object(t reflect.Type) object {
	name := strings.TrimSuffix(t.Name(), "Spec")
	ref := object{"$ref": "#/definitions/" + name}
	if w.definitions[name] != nil {
		return ref
	}
	properties, required := object{}, []any{}
	w.definitions[name] = object{"type": "object", "additionalProperties": false, "minProperties": 1, "properties": properties}
	for f := range t.Fields() {
		key, isRequired := tagOf(f)
		s := reflect.New(f.Type).Interface().(schemed).schema(w)
		if s["$ref"] != nil {
			s = object{"allOf": []any{s}} // beside $ref a description is not read
		}
		s["description"] = w.comments[t.Name()+"."+f.Name]
		properties[key] = s
		if isRequired {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		w.definitions[name].(object)["required"] = required
	}
	return ref
}

// comments reads the comments of the structs in schema.go.
func comments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "schema.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			all[spec.Name.Name+"."+f.Names[0].Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
		return false
	})
	return all
}

func TestSchemaForEditorsIsThatOfTheDecoder(t *testing.T) {
	w := &schemaWriter{comments: comments(t), definitions: object{}}
	for field, text := range w.comments {
		if text == "" {
			t.Errorf("%s has no comment", field)
		}
	}
	schema := object{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Policy of shaperd",
		"allOf": []any{w.object(reflect.TypeFor[fileSpec]())}, "definitions": w.definitions,
	}
	var got bytes.Buffer
	out := json.NewEncoder(&got)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(schema); err != nil {
		t.Fatal(err)
	}
	golden(t, "shaperd.schema.json", got.String())
}

// wellFormed returns the YAML files that are right.
func wellFormed(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"default.yaml": DefaultText, "reference.yaml": ReferenceText}
	entries, err := os.ReadDir("examples")
	if err != nil || len(entries) < 4 {
		t.Fatalf("%d examples, %v", len(entries), err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile("examples/" + e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestSchemaForEditorsTakesWhatIsRight(t *testing.T) {
	schema := readSchema(t)
	for name, text := range wellFormed(t) {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range schema.check(schema.root, v, name) {
			t.Error(wrong)
		}
	}
}

func TestSchemaForEditorsFindsMistakes(t *testing.T) {
	schema := readSchema(t)
	for _, text := range []string{
		"rely: 1", "relays: web", "relays: []", "relays: [{name: web}]", "relays: [{name: web, listen: 8443}]",
		"relays: [{name: web, listen: '127.0.0.1:1', upload: 50mbps}]", "relays: [{name: web, listen: '127.0.0.1:1', kind: socks}]",
		"classes: [{name: a b}]", "classes: [{name: a, priority: 8}]", "classes: [{name: a, default: 1}]", "classes: [{name: a, rate: 101.12345%}]",
		"classes: [{name: a, match: [{port: 65536}]}]", "classes: [{name: a, match: [{port: 80-}]}]", "metrics: {listen: on}",
		"interfaces: [{name: eth0, overhead: 257}]", "interfaces: [{name: a-name-that-is-too-long}]",
		"relays: [{name: web, listen: '127.0.0.1:1', timeouts: {idle: 60}}]", "relays: [{name: web, listen: '127.0.0.1:1', limits: {sessions: 0}}]",
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if len(schema.check(schema.root, v, "")) == 0 {
			t.Errorf("no mistake in %s", text)
		}
	}
}

// A jsonSchema checks values with as much of JSON Schema as ours uses.
type jsonSchema struct{ root object }

func readSchema(t *testing.T) jsonSchema {
	t.Helper()
	var s jsonSchema
	if err := json.Unmarshal(SchemaText, &s.root); err != nil {
		t.Fatal(err)
	}
	return s
}

func (j jsonSchema) check(s object, v any, at string) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for word, is := range s {
		switch word {
		case "$ref":
			definition := j.root["definitions"].(object)[strings.TrimPrefix(is.(string), "#/definitions/")]
			wrong = append(wrong, j.check(definition.(object), v, at)...)
		case "allOf":
			for _, one := range is.([]any) {
				wrong = append(wrong, j.check(one.(object), v, at)...)
			}
		case "anyOf":
			if !slices.ContainsFunc(is.([]any), func(one any) bool { return len(j.check(one.(object), v, at)) == 0 }) {
				add("%v is none of those allowed", v)
			}
		case "enum":
			if !slices.Contains(is.([]any), v) {
				add("%v is not in %v", v, is)
			}
		case "type":
			types, several := is.([]any)
			if !several {
				types = []any{is}
			}
			if !slices.ContainsFunc(types, func(t any) bool { return isOfType(v, t.(string)) }) {
				add("%v is not of type %v", v, is)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(is.(string)).MatchString(text) {
				add("%q does not match %s", text, is)
			}
		case "minimum", "maximum":
			if n, ok := number(v); ok && (word == "minimum" && n < is.(float64) || word == "maximum" && n > is.(float64)) {
				add("%v is beyond the %s of %v", v, word, is)
			}
		case "minItems", "minProperties":
			if reflect.ValueOf(v).Kind() == reflect.Slice && len(v.([]any)) < 1 || reflect.ValueOf(v).Kind() == reflect.Map && len(v.(object)) < 1 {
				add("empty")
			}
		case "items":
			items, _ := v.([]any)
			for i, item := range items {
				wrong = append(wrong, j.check(is.(object), item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case "properties", "additionalProperties":
			fields, _ := v.(object)
			known, _ := s["properties"].(object)
			for key, field := range fields {
				sub, ok := known[key].(object)
				if other, isSchema := s["additionalProperties"].(object); isSchema {
					sub, ok = other, true
				}
				if !ok {
					add("unknown key %s", key)
				} else {
					wrong = append(wrong, j.check(sub, field, at+"."+key)...)
				}
			}
		case "required":
			fields, isObject := v.(object)
			for _, key := range is.([]any) {
				if isObject && fields[key.(string)] == nil {
					add("no %v", key)
				}
			}
		}
	}
	return wrong
}

func isOfType(v any, name string) bool {
	n, isNumber := number(v)
	switch v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case []any:
		return name == "array"
	case object:
		return name == "object"
	}
	return isNumber && (name == "number" || name == "integer" && n == math.Trunc(n))
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case uint64:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func TestReferenceHasEveryKey(t *testing.T) {
	r := newReport("reference.yaml")
	var f value[fileSpec]
	f.decode(r, r.readYAML(ReferenceText), "the policy")
	has := map[string]bool{}
	f.cover(has)
	for field := range comments(t) {
		if !has[field] {
			t.Errorf("reference.yaml has no %s", field)
		}
	}
}

func TestDefaultTimeoutsAreThoseDocumented(t *testing.T) {
	all := comments(t)
	defaults := reflect.ValueOf(defaultTimeouts)
	for i := range defaults.NumField() {
		name := defaults.Type().Field(i).Name
		_, text, _ := strings.Cut(all["timeoutsSpec."+name], "Not given: ")
		if d, err := time.ParseDuration(strings.TrimSuffix(text, ".")); err != nil || d != defaults.Field(i).Interface() {
			t.Errorf("%s is documented as %q, and is %v", name, text, defaults.Field(i))
		}
	}
}
