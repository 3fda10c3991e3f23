package page

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	update = flag.Bool("update", false, "write docs/page.png")
	shots  = flag.String("shots", "", "a folder to write pictures of the page to, for a look at them")
)

const picture = "../../docs/page.png"

// shoot returns a picture of the page with two minutes of history.
func shoot(t *testing.T, v view) []byte {
	v.speed = 20
	s := &sample{}
	b := open(t, s.quick(), v)
	b.until(`document.querySelectorAll('.panel').length === 3 && performance.now() > 130000`)
	if v.width == phone.width {
		return run(b, chromedp.FullScreenshot(100))
	}
	return run(b, chromedp.CaptureScreenshot())
}

func TestPictureInTheDocs(t *testing.T) {
	if *update {
		if err := os.WriteFile(picture, shoot(t, view{width: 1280, height: 900}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range map[string]view{
		"desktop-light": {width: 1280, height: 1000}, "desktop-dark": {width: 1280, height: 1000, dark: true},
		"phone-light": {width: 390, height: 844}, "phone-dark": {width: 390, height: 844, dark: true},
	} {
		if *shots != "" {
			if err := os.WriteFile(*shots+"/"+name+".png", shoot(t, v), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(text)); err != nil || len(text) > 150<<10 {
		t.Errorf("%s: %v, %d bytes: it should be a PNG below 150 KiB", picture, err, len(text))
	}
}
