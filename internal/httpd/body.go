package httpd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"shaperd/internal/near"
)

// A BodyError is what is wrong with a request's body, and the status that says so.
type BodyError struct {
	Status int
	text   string
}

func (e *BodyError) Error() string { return e.text }

// ReadBody reads a request's body into what to points to, a struct: one JSON object
// with nothing unknown in it. An error is a *BodyError; of a body that is longer than
// an http.MaxBytesReader lets through it has the status for that.
func ReadBody(r *http.Request, to any) error {
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	err := in.Decode(to)
	if err == nil {
		_, err = in.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil || isSyntax(err):
			return &BodyError{http.StatusBadRequest, "read the body: there is something after the JSON object"}
		}
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &BodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit)}
	}
	return &BodyError{http.StatusBadRequest, explain(err, keys(to))}
}

func isSyntax(err error) bool {
	_, is := errors.AsType[*json.SyntaxError](err)
	return is
}

// explain says what is wrong with a body that may have some keys.
func explain(err error, keys []string) string {
	object := "give a JSON object with " + strings.Join(keys, ", ")
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		switch {
		case kind.Field == "":
			return fmt.Sprintf("the body is a JSON %s: %s", kind.Value, object)
		case kind.Type.Kind() == reflect.String:
			return fmt.Sprintf("%s: a text is needed, not a %s", kind.Field, kind.Value)
		}
		return fmt.Sprintf("%s: a whole number that 64 bits hold is needed, not a %s", kind.Field, kind.Value)
	}
	if errors.Is(err, io.EOF) {
		return "no body: " + object
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if key, err := strconv.Unquote(quoted); err == nil {
			return "unknown key " + quoted + near.Hint(key, keys)
		}
	}
	if isSyntax(err) {
		return "read the body: " + err.Error()
	}
	return "the body ends too early: " + object // or no more of it came in time
}

// keys are those of a struct that to points to.
func keys(to any) (all []string) {
	t := reflect.TypeOf(to).Elem()
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}
