package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"shaperd/client"
	"shaperd/internal/admission"
	"shaperd/internal/admission/api"
	"shaperd/shaper"
)

const secret = "0123456789abcdef"

var classes = []admission.Class{
	{Name: "fast", Rate: 80 * shaper.Mbit, Burst: 50_000},
	{Name: "slow", Rate: 8 * shaper.Kbit, Burst: 10_000},
	{Name: "calls", Requests: admission.RequestLimit{PerHour: 100 * 3600, Burst: 2}},
}

func newAdmission() *admission.Admission {
	a := admission.New()
	if err := a.Update(classes); err != nil {
		panic(err)
	}
	return a
}

// daemon answers on a unix socket, as a shaperd does.
func daemon(t testing.TB, path string) (a *admission.Admission) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a = newAdmission()
	mux := http.NewServeMux()
	api.Mount(mux, a)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return a
}

func newClient(t testing.TB) (*client.Client, *admission.Admission) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	a := daemon(t, path)
	c, err := client.New(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, a
}

func granted(a *admission.Admission, class string) (granted, refused uint64) {
	for _, s := range a.Stats() {
		if s.Class == class {
			return s.Granted, s.Refused
		}
	}
	return 0, 0
}

func TestTakeIsGrantedOrRefused(t *testing.T) {
	c, _ := newClient(t)
	d, err := c.Take(t.Context(), "slow", client.Request{Bytes: 9000})
	if err != nil || d.Remaining < 1000 || d.Limit != 10_000 || d.Reset <= 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err = c.Take(t.Context(), "slow", client.Request{Bytes: 9000})
	refused, ok := errors.AsType[*client.RefusedError](err)
	if !ok || refused.RetryAfter < 7*time.Second || refused.RetryAfter > 8*time.Second || refused.Class != "slow" {
		t.Errorf("%v, want to come again in 8 s", err)
	}
	for _, tt := range []struct {
		class  string
		r      client.Request
		status int
		want   string
	}{
		{"slwo", client.Request{Bytes: 1}, 404, "did you mean slow?"},
		{"slow", client.Request{}, 400, "neither bytes nor cost"},
		{"slow", client.Request{Bytes: 10_001}, 422, "more than its burst"},
	} {
		_, err := c.Wait(t.Context(), tt.class, tt.r) // does not wait for what never comes
		wrong, ok := errors.AsType[*client.RequestError](err)
		if !ok || wrong.Status != tt.status || !strings.Contains(wrong.Reason, tt.want) {
			t.Errorf("%s %+v: %v, want %d and %s", tt.class, tt.r, err, tt.status, tt.want)
		}
	}
}

// What is refused comes again when the daemon says: not before, and not often.
func TestWaitObeysRetryAfter(t *testing.T) {
	c, a := newClient(t)
	for range 12 {
		if _, err := c.Wait(t.Context(), "calls", client.Request{Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n, refused := granted(a, "calls"); n != 12 || refused > 12 {
		t.Errorf("%d granted and %d refused, want 12 and no more than that: it comes too early", n, refused)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("enough")
	if _, err := c.Take(ctx, "slow", client.Request{Bytes: 10_000}); err != nil {
		t.Fatal(err)
	}
	cancel(mine)
	if _, err := c.Wait(ctx, "slow", client.Request{Bytes: 10_000}); !errors.Is(err, mine) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// What it waited for is said when its time is over, here in its second attempt.
func TestWaitSaysWhyItsTimeIsOver(t *testing.T) {
	mine := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			cancel(mine)
			<-ctx.Done()
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"errors":["nobody can say"],"retry_after_ms":1}`)
	}))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Wait(ctx, "slow", client.Request{Bytes: 1})
	why, ok := errors.AsType[*client.UnavailableError](err)
	if !errors.Is(err, mine) || !ok || why.RetryAfter != time.Millisecond || err.Error() != "enough: nobody can say" {
		t.Errorf("%v, want the cause, and why", err)
	}
	if _, err = c.Wait(ctx, "slow", client.Request{Bytes: 1}); !errors.Is(err, mine) || err.Error() != "enough" { // it was not asked
		t.Errorf("%v, want the cause", err)
	}
}

// An answer that is no decision, as of a proxy, is neither waited out nor a grant.
func TestWaitEndsWithWhatIsNoDecision(t *testing.T) {
	var status int
	var body string
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 { // it has been waited for: the end
			status, body = http.StatusOK, `{"granted":true}`
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer s.Close()
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const html = "<html>nginx"
	for _, tt := range []struct {
		status int
		body   string
	}{
		{400, "400 Bad Request: malformed Host header"},
		{401, html}, {403, html}, {404, html}, {404, ""}, {404, `{}`}, {404, `{"errors":"none"}`},
		{304, ""},
		{200, `{"granted":false}`}, {200, `{}`}, {200, html}, {200, ""}, {200, `{"granted":true,"limit":"all"}`}, {202, `{"granted":true}`},
	} {
		status, body, asked = tt.status, tt.body, 0
		_, err := c.Wait(t.Context(), "slow", client.Request{Bytes: 1})
		wrong, ok := errors.AsType[*client.RequestError](err)
		want := fmt.Sprintf("the answer of %s is %d %s, and no decision of a shaperd: is the address right?", s.Listener.Addr(), tt.status, http.StatusText(tt.status))
		if !ok || wrong.Status != tt.status || wrong.Reason != want {
			t.Errorf("%d %q: %v, want %s", tt.status, tt.body, err, want)
		}
	}
	status, body, asked = http.StatusRequestTimeout, html, 0 // it was too slow, not wrong
	if _, err := c.Wait(t.Context(), "slow", client.Request{Bytes: 1}); err != nil || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// Who answers is waited for, whatever it answers; who is not there is, for so long.
func TestPatienceIsForThoseWhoDoNotAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	c, err := client.New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hasty := c.WithPatience(1)
	if _, err := hasty.Wait(t.Context(), "slow", client.Request{Bytes: 1}); err == nil || !strings.Contains(err.Error(), "no answer for 1ns: ask shaperd: ") {
		t.Errorf("without a daemon: %v", err)
	}
	if n, err := hasty.Limiter("slow", client.Options{}).Reader(t.Context(), strings.NewReader("text")).Read(make([]byte, 4)); n != 4 || err == nil {
		t.Errorf("without a daemon: %d bytes, %v", n, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"granted":true,"unit":"bytes","remaining":7,"limit":8,"reset_ms":9,"alone":true}`)
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	d, err := hasty.Wait(t.Context(), "slow", client.Request{Bytes: 1})
	if want := (client.Decision{Remaining: 7, Limit: 8, Reset: 9 * time.Millisecond, Unit: "bytes", Alone: true}); err != nil || asked != 4 || d != want {
		t.Errorf("asked %d times: %+v, %v", asked, d, err)
	}
}

// A relative path is one too. It is short, as a socket's has to be.
func TestRelativePathIsASocket(t *testing.T) {
	t.Chdir(t.TempDir())
	daemon(t, "socket")
	for _, dir := range []string{"deeper", "a:b"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{"./socket", "deeper/../socket", "./a:b/../socket"} {
		c, err := client.New(address)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := c.Take(t.Context(), "slow", client.Request{Bytes: 1}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		c.Close()
	}
}

// A daemon that is not there yet is asked again, ever later.
func TestWaitOutlastsTheDaemonsAbsence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	c, err := client.New(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		_, err := c.Wait(t.Context(), "slow", client.Request{Bytes: 1})
		done <- err
	}()
	if _, err := c.Take(t.Context(), "slow", client.Request{Bytes: 1}); err == nil {
		t.Error("nobody is there, and it is granted")
	}
	daemon(t, path)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTokenIsShown(t *testing.T) {
	var token api.Token
	token.Set(secret)
	s, err := api.Listen(netip.MustParseAddrPort("127.0.0.1:0"), &token, newAdmission())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = s.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	c, err := client.New("http://" + s.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Wait(t.Context(), "slow", client.Request{Bytes: 1}); err == nil || !strings.Contains(err.Error(), "no token, or a wrong one") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := c.WithToken(secret+"\n").Wait(t.Context(), "slow", client.Request{Bytes: 1}); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"", "socket", "ftp://127.0.0.1", "127.0.0.1:80", "127.0.0.1:80/", "http:/127.0.0.1"} {
		if _, err := client.New(address); err == nil || !strings.Contains(err.Error(), "./shaperd.sock, or a URL such as http://") {
			t.Errorf("address %q: %v", address, err)
		}
	}
}

// A limiter fills its bucket in helpings: far fewer requests than waits, and no
// more than the class has, however many share it.
func TestLimiterKeepsToTheClass(t *testing.T) {
	c, a := newClient(t)
	l := c.Limiter("fast", client.Options{})
	began := time.Now()
	const each, times, goroutines = 1000, 200, 4
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range times {
				if err := l.Wait(t.Context(), each); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	const sum = each * times * goroutines
	if most := 50_000 + int(time.Since(began).Seconds()*10e6); sum > most {
		t.Errorf("%d bytes in %v, and the class has %d", sum, time.Since(began), most)
	}
	if n, _ := granted(a, "fast"); n > goroutines*times/2 {
		t.Errorf("%d waits needed %d requests", goroutines*times, n)
	}
	if err := l.Wait(t.Context(), 70_000); err != nil { // more than the burst, in parts
		t.Error(err)
	}
	// The burst becomes smaller than the limiter knows it.
	if err := a.Update([]admission.Class{{Name: "fast", Rate: 80 * shaper.Mbit, Burst: 2000}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context(), 60_000); err != nil {
		t.Error(err)
	}
}

// Nothing costs nothing, and less than nothing earns nothing.
func TestLimiterTakesNoLessThanNothing(t *testing.T) {
	c, a := newClient(t)
	l := c.Limiter("calls", client.Options{Requests: true, Helping: 1})
	if err := l.Wait(t.Context(), -5); err == nil || err.Error() != `class "calls": wait for -5: give 0 or more` {
		t.Errorf("-5: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Wait(ctx, 0); err != nil {
		t.Errorf("0: %v", err)
	}
	if err := l.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if n, _ := granted(a, "calls"); n != 1 {
		t.Errorf("%d takes were granted, want 1: the rest came of nothing", n)
	}
}

// A limiter of the other unit says which options are right.
func TestLimiterNamesTheOptionsOfTheClass(t *testing.T) {
	c, _ := newClient(t)
	for _, tt := range []struct {
		class    string
		requests bool
		want     string
	}{
		{"calls", false, `class "calls" counts requests, not bytes: make its limiter with Options{Requests: true}`},
		{"slow", true, `class "slow" counts bytes, not requests: make its limiter with Options{Requests: false}`},
	} {
		err := c.Limiter(tt.class, client.Options{Requests: tt.requests}).Wait(t.Context(), 1)
		if _, ok := errors.AsType[*client.RequestError](err); !ok || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.class, err, tt.want)
		}
	}
}

func TestReaderAndWriterMoveEveryByte(t *testing.T) {
	c, _ := newClient(t)
	want := bytes.Repeat([]byte("shaperd "), 40_000)
	var got bytes.Buffer
	l := c.Limiter("fast", client.Options{})
	n, err := io.Copy(l.Writer(t.Context(), &got), l.Reader(t.Context(), bytes.NewReader(want)))
	if err != nil || n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d of %d bytes, %v", n, len(want), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := l.Reader(ctx, strings.NewReader(strings.Repeat("x", 60_000))).Read(make([]byte, 60_000)); n == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("a read that waits: %d bytes, %v; what was read must not be lost", n, err)
	}
}

func ExampleClient_Take() {
	c, err := client.New("/run/shaperd/shaperd.sock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Take(context.Background(), "api", client.Request{Cost: 1, Key: "customer-17"})
	if refused, ok := errors.AsType[*client.RefusedError](err); ok {
		fmt.Println("come again in", refused.RetryAfter)
	}
}

func ExampleLimiter_Reader() {
	path, stop := exampleDaemon()
	defer stop()
	c, err := client.New(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	paced := c.Limiter("fast", client.Options{}).Reader(context.Background(), strings.NewReader("all of a file"))
	text, err := io.ReadAll(paced)
	fmt.Println(string(text), err)
	// Output: all of a file <nil>
}
