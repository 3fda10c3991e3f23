package admin

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the schemas of openapi.yaml")

// The schemas of openapi.yaml are those of the Go types, with their comments.
func TestOpenAPIDescribesTheTypes(t *testing.T) {
	head, _, ok := bytes.Cut(OpenAPI, []byte("\n  schemas:\n"))
	if !ok {
		t.Fatal("openapi.yaml has no schemas")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n  schemas:\n", head)
	w := schemas{comments(t), &out}
	for _, v := range []any{
		Status{}, Reloads{}, Upcoming{}, RateChange{}, Rates{}, Link{}, Class{}, Relay{}, Interface{}, Override{},
		SetRequest{}, ResetRequest{}, Changed{}, Reloaded{}, Sessions{}, Session{}, LogLevel{}, Failure{},
		Shared{}, Share{}, Admission{},
	} {
		w.write(reflect.TypeOf(v))
	}
	if *update {
		if err := os.WriteFile("openapi.yaml", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out.String() != string(OpenAPI) {
		t.Errorf("openapi.yaml is not current: go test ./internal/admin -update writes it")
	}
}

// Every path of the document is served with its methods, and nothing else is.
func TestOpenAPIDescribesThePaths(t *testing.T) {
	var source []byte
	for _, file := range []string{"server.go", "../admission/api/handler.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	var described []string
	served := []string{ // by what is in front of the mux, see api.Authorize
		"GET /v1/classes/{class}/authorize", "GET /v1/classes/{class}/authorize/{rest...}",
	}
	for _, m := range regexp.MustCompile(`(read|change|HandleFunc)\("((GET|POST|PUT) )?(/[^"]*)"`).FindAllStringSubmatch(string(source), -1) {
		if m[3] == "" {
			m[3] = "GET"
		}
		served = append(served, m[3]+" "+m[4])
	}
	path := ""
	for line := range strings.Lines(string(OpenAPI)) {
		if strings.HasPrefix(line, "components:") {
			break
		}
		if m := regexp.MustCompile(`^  (/\S*):$`).FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			path = m[1]
		}
		if m := regexp.MustCompile(`^    (get|post|put):$`).FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			described = append(described, strings.ToUpper(m[1])+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if len(served) < 8 || !slices.Equal(served, described) {
		t.Errorf("served are\n%v\ndescribed are\n%v", served, described)
	}
}

type schemas struct {
	comments map[string]string // by "Type" and "Type.Field"
	out      *strings.Builder
}

func (w schemas) write(t reflect.Type) {
	fmt.Fprintf(w.out, "    %s:\n      type: object\n", t.Name())
	if text := w.comments[t.Name()]; text != "" {
		fmt.Fprintf(w.out, "      description: %q\n", text)
	}
	fmt.Fprint(w.out, "      properties:\n")
	var required []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options != "omitempty" {
			required = append(required, name)
		}
		text := ""
		if c := w.comments[t.Name()+"."+f.Name]; c != "" {
			text = fmt.Sprintf(", description: %q", c)
		}
		fmt.Fprintf(w.out, "        %s: {%s%s}\n", name, schemaOf(f.Type), text)
	}
	if len(required) > 0 {
		fmt.Fprintf(w.out, "      required: [%s]\n", strings.Join(required, ", "))
	}
}

func schemaOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		return "type: string"
	case reflect.Bool:
		return "type: boolean"
	case reflect.Float64:
		return "type: number"
	case reflect.Slice:
		return "type: array, items: {" + schemaOf(t.Elem()) + "}"
	case reflect.Map:
		return "type: object, additionalProperties: {" + schemaOf(t.Elem()) + "}"
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return "type: string, format: date-time"
		}
		return `$ref: "#/components/schemas/` + t.Name() + `"`
	}
	return "type: integer"
}

// comments reads the comments of the types of the requests and answers.
func comments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"api.go", "shared.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			spec := g.Specs[0].(*ast.TypeSpec)
			all[spec.Name.Name] = strings.Join(strings.Fields(g.Doc.Text()), " ")
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				all[spec.Name.Name+"."+f.Names[0].Name] = strings.TrimSpace(f.Comment.Text())
			}
		}
	}
	return all
}
