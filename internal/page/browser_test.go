package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is for a browser on a busy machine.
const patience = time.Minute

// browser is one for all tests, each of which has a tab of its own.
var browser context.Context

func TestMain(m *testing.M) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox) // it does not start as root with one; it sees this page only
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	code := m.Run()
	end()
	endAllocator()
	os.Exit(code)
}

var startBrowser = sync.OnceValue(func() error { return chromedp.Do(browser) })

// A view is how a tab looks at the page.
type view struct {
	width, height int64
	dark          bool
	speed         int // of the page's clock
}

var (
	desktop = view{1280, 900, false, 1}
	phone   = view{390, 844, false, 1}
)

// A tab shows the page.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the browser: errors, violations of the policy
}

// open shows what h serves, until the test ends.
func open(t *testing.T, h http.Handler, v view) *tab {
	t.Helper()
	if err := startBrowser(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	limited, cancel := context.WithTimeout(browser, patience)
	t.Cleanup(cancel)
	ctx, closeTab := chromedp.NewContext(limited)
	t.Cleanup(closeTab)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	clock := fmt.Sprintf(`{
		const now = performance.now.bind(performance), later = setTimeout;
		performance.now = () => now() * %[1]d;
		window.setTimeout = (f, ms, ...more) => later(f, ms / %[1]d, ...more);
	}`, v.speed)
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: clock})
	b.do(chromedp.EmulateViewport(v.width, v.height), chromedp.Navigate(server.URL))
	return b
}

func (b *tab) listen(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text = e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("console.%v %v", e.Type, e.Args)
	case *log.EventEntryAdded:
		text = e.Entry.Text + " " + e.Entry.URL
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// run returns what an action does.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// eval returns what an expression of JavaScript is.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	look := `new Promise((found) => {
		const end = Date.now() + 30000;
		(function look() {
			if (` + expression + `) found(true);
			else if (Date.now() > end) found(false);
			else requestAnimationFrame(look);
		})();
	})`
	if found, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise)); err != nil || !found {
		b.t.Fatalf("never true: %s (%v); the page says\n%s", expression, err, eval[string](b, "document.body.innerText"))
	}
}

// mustBeContent fails when the browser complained.
func (b *tab) mustBeContent() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.t.Errorf("the browser complains:\n%s", strings.Join(b.complaints, "\n"))
	}
}
