package httpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBodiesThatAreNoObjectSayWhy(t *testing.T) {
	const most = 64
	slow := iotest.ErrReader(os.ErrDeadlineExceeded) // as of a client that says no more in time
	text := func(s string) io.Reader { return strings.NewReader(s) }
	for _, tt := range []struct {
		body   io.Reader
		status int
		want   string
	}{
		{text(`{"cost": 1}` + strings.Repeat(" ", most-11)), 0, ""},
		{text(`{"cost": 1}` + strings.Repeat(" ", most)), http.StatusRequestEntityTooLarge, "the body has more than 64 bytes"},
		{text(strings.Repeat(" ", most) + `{"cost": 1}`), http.StatusRequestEntityTooLarge, "the body has more than 64 bytes"},
		{text(`{"cost": 1} {}`), http.StatusBadRequest, "read the body: there is something after the JSON object"},
		{text(`{"cost": 1} x`), http.StatusBadRequest, "read the body: there is something after the JSON object"},
		{text(`{"cost": 1`), http.StatusBadRequest, "the body ends too early: give a JSON object with cost"},
		{io.MultiReader(text(`{"co`), slow), http.StatusBadRequest, "the body ends too early: give a JSON object with cost"},
		{io.MultiReader(text(`{"cost": 1}`), slow), http.StatusBadRequest, "the body ends too early: give a JSON object with cost"},
		{text(`{cost: 1}`), http.StatusBadRequest, "read the body: invalid character 'c' looking for beginning of object key string"},
		{text(``), http.StatusBadRequest, "no body: give a JSON object with cost"},
	} {
		r := &http.Request{Body: http.MaxBytesReader(nil, io.NopCloser(tt.body), most)}
		var to struct {
			Cost int `json:"cost"`
		}
		err := ReadBody(r, &to)
		wrong, is := errors.AsType[*BodyError](err)
		if is != (tt.status != 0) || is && (wrong.Status != tt.status || wrong.Error() != tt.want) {
			t.Errorf("%v, want %d %s", err, tt.status, tt.want)
		}
	}
}

// A body that is shorter than its Content-Length is no shorter body.
func TestABodyThatIsCutOffIsNotTaken(t *testing.T) {
	addr := serveTest(t, 4, func(w http.ResponseWriter, r *http.Request) {
		var to struct {
			Cost int `json:"cost"`
		}
		fmt.Fprint(w, ReadBody(r, &to))
	})
	for _, body := range []string{"", `{"cost"`, `{"cost":1}`} {
		c := dialTest(t, addr)
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n%s", body)
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		if want := "the body ends too early: give a JSON object with cost"; string(text) != want || err != nil {
			t.Errorf("%q: %s, %v", body, text, err)
		}
	}
}
