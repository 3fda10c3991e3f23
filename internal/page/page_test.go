package page

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shaperd/internal/admin"

	"github.com/chromedp/chromedp"
)

const drawn = `document.querySelectorAll('.panel canvas').length > 0`

// texts are those of all elements that a selector fits.
func texts(b *tab, selector string) []string {
	b.t.Helper()
	return eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.textContent)`, selector))
}

func TestEveryLinkAndClassIsThereAndMoves(t *testing.T) {
	s := &sample{}
	b := open(t, Handler(s.status), desktop)
	b.until(drawn)
	want, _ := s.status(t.Context())
	var links, classes []string
	for _, l := range want.Links {
		links = append(links, l.Name)
		for _, c := range l.Classes {
			classes = append(classes, c.Name)
		}
	}
	if got := texts(b, ".panel h2"); fmt.Sprint(got) != fmt.Sprint(links) {
		t.Errorf("links %q, want %q", got, links)
	}
	if got := texts(b, ".panel tbody th"); fmt.Sprint(got) != fmt.Sprint(classes) {
		t.Errorf("classes %q, want %q", got, classes)
	}
	for text, where := range map[string]string{
		"ready": "#state", want.Policy: "#facts", "1\u00a0d 2\u00a0h": "#facts", "backup on wan0 egress 5\u00a0Mbit/s → 20\u00a0Mbit/s, and 1 more": "#facts",
		"web on wan0 egress: rate 20mbit, until ": "#overrides", "of 50\u00a0Mbit/s": ".panel .of", "wan0 egress ": "#summary",
	} {
		if got := texts(b, where); !strings.Contains(strings.Join(got, " "), text) {
			t.Errorf("%s has %q, want %q in it", where, got, text)
		}
	}
	before := texts(b, ".panel .now")
	b.until(fmt.Sprintf(`document.querySelector('.panel tbody .now').textContent !== %q`, before[2]))
	// Something is painted: the chart has more than the ground's colour.
	painted := `(() => {
		const c = document.querySelector('.panel canvas');
		return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size > 10;
	})()`
	b.until(painted)
	b.mustBeContent()
}

func TestWarningsSayWhatIsWrong(t *testing.T) {
	var well atomic.Bool
	b := open(t, Handler((&sample{change: func(s *admin.Status) {
		s.Links[0].Rate, s.Links[0].Classes[1].Ceil = 0, 0 // unlimited is nothing to warn of
		if well.Load() {
			return
		}
		s.State = "draining"
		s.Interfaces = []admin.Interface{
			{Name: "one", Present: true, Drift: true}, {Name: "two*"}, {Name: "three", Present: true, Problem: "no room"},
		}
		s.Links[1].Unshaped = 1234
		s.Relays[0].State = "drained"
		s.Reloads.LastError = []string{"secret"}
		s.Shared = &admin.Shared{Problem: "redis secret: no answer", OnOutage: "min"}
		far := time.Date(2036, 3, 6, 12, 0, 0, 0, time.UTC)
		s.Overrides = append(s.Overrides, admin.Override{Class: "web", Rate: "1mbit", Until: &far})
	}}).status), desktop)
	b.until(drawn)
	got := strings.Join(texts(b, "#warnings li"), "\n")
	for _, want := range []string{
		"The daemon ends", "The last reload failed", "one: the kernel has something else", "two*: there is no such interface",
		"three: no room", "shared classes is away: they have what on_outage says (min)", "wan0 ingress: 1,234 packets passed", "relay office: drained",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q", want)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 8 || strings.Contains(got, "secret") {
		t.Errorf("%d warnings, want 8 without secrets:\n%s", n, got)
	}
	if n := strings.Count(got, "next reload"); n > 0 {
		t.Errorf("a daemon that ends is said to reload:\n%s", got)
	}
	if got := strings.Join(texts(b, "#overrides li"), "\n"); !strings.Contains(got, "web: rate 1mbit, until 2036-03-06 12:00") {
		t.Errorf("an override that ends in years: %s", got)
	}
	well.Store(true)
	b.until(`document.getElementById('warnings').hidden && document.getElementById('state').textContent === 'ready'`)
	b.mustBeContent()
}

// A class's name may hold nothing dangerous today; the page does not count on it.
func TestNamesAreTextWhateverTheyAre(t *testing.T) {
	const evil = `<img src=x onerror="window.evil=1"><script>window.evil=1</script>`
	b := open(t, Handler((&sample{change: func(s *admin.Status) {
		s.Policy, s.State, s.Version = evil, evil, evil
		s.Links[0].Name, s.Links[0].Datapath, s.Links[0].Classes[0].Name = evil, evil, evil
		s.Links[0].Unshaped = 1
		s.Overrides[0].Class, s.Overrides[0].Rate = evil, evil
		s.Interfaces[0].Name, s.Interfaces[0].Drift, s.Interfaces[0].Problem = evil, true, evil
		s.Next.Changes[0].Class = evil
		s.Relays[0].Name, s.Relays[0].State = evil, evil
	}}).status), desktop)
	b.until(drawn)
	for _, where := range []string{"#facts", "#state", "#version", "#warnings", "#overrides", ".panel h2", ".panel .badge", ".panel tbody th"} {
		if !strings.Contains(strings.Join(texts(b, where), " "), evil) {
			t.Errorf("%s does not show the name as it is", where)
		}
	}
	b.do(chromedp.MouseEvent("mouseMoved", 450, 400)) // the chart's own names
	if eval[bool](b, `'evil' in window || document.images.length > 0`) {
		t.Error("a name was taken for HTML")
	}
	b.mustBeContent()
}

func TestPauseByKeyboard(t *testing.T) {
	s := &sample{}
	b := open(t, Handler(s.status), desktop)
	b.until(drawn)
	b.do(chromedp.KeyEvent("\t"))
	if got := eval[string](b, `document.activeElement.id`); got != "pause" {
		t.Fatalf("Tab leads to %q, want the pause button", got)
	}
	if got := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
		t.Errorf("the focus is drawn with outline %q", got)
	}
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.getElementById('pause').textContent === 'Resume' && document.getElementById('state').textContent === 'paused'`)
	// This would ask at once if it could.
	asks := `(() => {
		const before = window.fetch;
		let n = 0;
		window.fetch = (...a) => { n++; return before(...a); };
		document.dispatchEvent(new Event('visibilitychange'));
		window.fetch = before;
		return n;
	})()`
	if n := eval[int](b, asks); n != 0 {
		t.Error("it asks while it is paused")
	}
	before := s.asked.Load()
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.getElementById('pause').textContent === 'Pause' && document.getElementById('state').textContent === 'ready'`)
	for s.asked.Load() == before { // the first answer may be one that is fresh enough; until fails when the tab's time is over
		b.until(`document.getElementById('state').textContent === 'ready'`)
	}
	// A tab in the background asks nothing.
	hide := `Object.defineProperty(document, 'hidden', { value: true, configurable: true })`
	if n := eval[int](b, hide+` && `+asks); n != 0 {
		t.Error("it asks while it is hidden")
	}
	b.mustBeContent()
}

func TestLostConnectionIsSaidAndMended(t *testing.T) {
	var broken atomic.Bool
	h := Handler((&sample{}).status)
	b := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	}), view{1280, 900, false, 4})
	b.until(drawn)
	broken.Store(true)
	b.until(`document.getElementById('state').textContent === 'connection lost' && document.getElementById('lost').innerText.includes('trying again')`)
	broken.Store(false)
	b.until(`document.getElementById('state').textContent === 'ready' && document.getElementById('lost').hidden`)
}

func TestPhoneNeedsNoSidewaysScrolling(t *testing.T) {
	long := strings.Repeat("Wide", 15) + "www"
	b := open(t, Handler((&sample{change: func(s *admin.Status) {
		s.Policy = "/" + long
		s.Links[0].Name = "relay " + long + " download"
		s.Links[1].Classes[1].Name = long
		s.Links[1].Classes[2].Dropped = 1 << 40
		s.Links[2].Classes[2].Sent = 1 << 60
	}}).status), phone)
	b.until(drawn)
	for _, width := range []int64{phone.width, 320, 761, 1241, 1280} {
		b.do(chromedp.EmulateViewport(width, 844))
		b.until(fmt.Sprintf(`innerWidth === %d && document.querySelector('.uplot').clientWidth <= document.querySelector('.chart').clientWidth`, width))
		if w := eval[int64](b, `document.documentElement.scrollWidth`); w > width {
			t.Errorf("at a width of %d the page is %d wide", width, w)
		}
		spills := `[...document.querySelectorAll('td, th, dd, h2, .badge, #state, .caption')].filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && getComputedStyle(e).display !== 'inline').map((e) => e.className + ' ' + e.textContent)`
		if got := eval[[]string](b, spills); len(got) > 0 {
			t.Errorf("at a width of %d these do not fit: %q", width, got)
		}
	}
	b.mustBeContent()
}

func TestColoursFollowTheScheme(t *testing.T) {
	for _, dark := range []bool{false, true} {
		b := open(t, Handler((&sample{}).status), view{1280, 900, dark, 1})
		b.until(drawn)
		// The weakest of all classes' colours and texts against what they are on, as WCAG counts it.
		weakest := func(names, ground string) float64 {
			return eval[float64](b, fmt.Sprintf(`(() => {
				const style = getComputedStyle(document.documentElement);
				const light = (name) => {
					const hex = style.getPropertyValue(name).trim();
					const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
					return .2126 * r + .7152 * g + .0722 * b;
				};
				return Math.min(...%q.split(' ').map((n) => {
					const [a, z] = [light(n), light(%q)].sort((x, y) => y - x);
					return (a + .05) / (z + .05);
				}));
			})()`, names, ground))
		}
		if got := weakest("--c0 --c1 --c2 --c3 --c4 --c5 --c6 --c7", "--panel"); got < 3 {
			t.Errorf("dark %v: a class has a contrast of %.2f, want 3", dark, got)
		}
		for _, ground := range []string{"--panel", "--ground"} {
			if got := weakest("--text --soft --accent --warn --bad", ground); got < 4.5 {
				t.Errorf("dark %v: a text on %s has a contrast of %.2f, want 4.5", dark, ground, got)
			}
		}
		for _, name := range []string{"good", "warn", "bad"} {
			if got := weakest("--"+name, "--"+name+"-ground"); got < 4.5 {
				t.Errorf("dark %v: %s has a contrast of %.2f, want 4.5", dark, name, got)
			}
		}
		if isDark := weakest("--ground", "--text") > 1 && eval[bool](b, `getComputedStyle(document.body).backgroundColor === 'rgb(14, 18, 23)'`); isDark != dark {
			t.Errorf("the page is dark: %v, want %v", isDark, dark)
		}
	}
}

// What the other tests ask the browser for is something that it would tell.
func TestTheBrowserComplainsOfInlineCode(t *testing.T) {
	b := open(t, Handler((&sample{}).status), desktop)
	b.until(drawn)
	b.do(chromedp.Evaluate[chromedp.Void](`(() => {
		window.blocked = [];
		document.addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective));
		document.body.setAttribute('style', 'color: red');
		try { document.body.innerHTML = '<b>x</b>'; } catch { }
	})()`))
	b.until(`blocked.some((d) => d.startsWith('style-src')) && blocked.includes('require-trusted-types-for')`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) < 2 {
		t.Errorf("complaints %q, want one of each", b.complaints)
	}
}

func TestATableForThoseWhoSeeNoChart(t *testing.T) {
	b := open(t, Handler((&sample{}).status), phone)
	b.until(drawn)
	for _, want := range []string{
		`document.querySelectorAll('section[aria-labelledby]').length >= 3`,
		`[...document.querySelectorAll('.chart')].every((e) => e.getAttribute('role') === 'img' && e.getAttribute('aria-label').includes('table'))`,
		`document.querySelectorAll('table [role=columnheader]').length === 3 * 7`,
		`document.querySelectorAll('table [role=row] > [role=rowheader]').length === 3 * 4`,
		`document.getElementById('summary').getAttribute('aria-live') === 'polite'`,
	} {
		if !eval[bool](b, want) {
			t.Errorf("not true: %s", want)
		}
	}
}
