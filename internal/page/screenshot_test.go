package page

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
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
	v.speed = 8
	s := &sample{}
	b := open(t, s.quick(), v)
	b.until(`document.querySelectorAll('.panel').length === 3 && performance.now() > 130000`)
	return run(b, chromedp.CaptureScreenshot())
}

// packed is the picture in its 256 most frequent colours, a third of the bytes.
func packed(t *testing.T, text []byte) []byte {
	p, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			count[p.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	few := image.NewPaletted(p.Bounds(), colours[:min(256, len(colours))])
	draw.Draw(few, few.Bounds(), p, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPictureInTheDocs(t *testing.T) {
	if *update {
		if err := os.WriteFile(picture, packed(t, shoot(t, view{width: 1280, height: 790})), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range map[string]view{
		"desktop-light": {width: 1280, height: 1000}, "desktop-dark": {width: 1280, height: 1000, dark: true},
		"phone-light": {width: 390, height: 1100}, "phone-dark": {width: 390, height: 1100, dark: true},
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
	if _, err := png.Decode(bytes.NewReader(text)); err != nil || len(text) > 150000 {
		t.Errorf("%s: %v, %d bytes: it should be a PNG below 150 kB", picture, err, len(text))
	}
}
