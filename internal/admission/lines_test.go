package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// One after the other is first, and who comes learns when those before are served.
func TestALineIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := web.limits() // 1000 bytes a second, and as much at once
		c, lines := &class{limits: l}, &lines{}
		told := func(bytes int64) string {
			s, busy := lines.behind(c, "k", 8*bytes)
			return fmt.Sprint(busy, s.retry, s.reset)
		}
		expect := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		expect("nobody there", told(1), "false 0s 0s")
		var served []int
		for i := range 4 {
			go func() {
				p := lines.enter("k", 8*100)
				defer p.leave()
				wait := time.Second
				if i == 2 {
					wait = 120 * time.Millisecond
				}
				if first, err := p.wait(t.Context(), wait); err != nil || first == (i == 2) {
					t.Errorf("%d: first is %v, %v", i, first, err)
				} else if first {
					p.refused(70 * time.Millisecond) // the bucket has 30
					time.Sleep(70 * time.Millisecond)
					served = append(served, i)
				}
			}()
			synctest.Wait()
		}
		// 70 ms for the first, 300 bytes for the others.
		expect("behind four", told(50), "true 420ms 1.37s")
		time.Sleep(69 * time.Millisecond)
		synctest.Wait()
		expect("later", told(50), "true 351ms 1.301s")
		time.Sleep(61 * time.Millisecond) // the second asked at 70 ms, the third has left at 120
		synctest.Wait()
		expect("when one has left", told(50), "true 160ms 1.11s")
		time.Sleep(time.Second)
		synctest.Wait()
		expect("in the end", fmt.Sprint(served, len(lines.byKey)), "[0 1 3] 0")
	})
}

// When other hosts take what the first waits for, it does not keep this host's from
// asking for ever; who is first after it does so anew.
func TestALineKeepsOthersBackForTwiceAsLongAsItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := web.limits()
		c, lines := &class{limits: l}, &lines{}
		back := func(want bool, what string) {
			t.Helper()
			if _, busy := lines.behind(c, "k", 8); busy != want {
				t.Errorf("%s: keeps back is %v", what, busy)
			}
		}
		first := lines.enter("k", 8)
		if ok, err := first.wait(t.Context(), 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		back(false, "before it is refused")
		for range 2 {
			first.refused(100 * time.Millisecond) // others took it
			time.Sleep(100 * time.Millisecond)
			back(true, "until twice the time")
		}
		first.refused(100 * time.Millisecond)
		time.Sleep(keep + time.Millisecond)
		back(false, "after that")
		second := lines.enter("k", 8)
		first.leave()
		if ok, err := second.wait(t.Context(), 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		second.refused(time.Second)
		back(true, "the next one")
		second.leave()
	})
}

// Those behind one who was granted ask at once, as far as there is enough for them;
// who is refused then, beside a head, has the next turn.
func TestALineAsksTogetherWhereThereIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines lines
		turn := func(p *place) bool {
			ok, err := p.wait(t.Context(), 0)
			return ok && err == nil
		}
		var all []*place
		for range 6 {
			all = append(all, lines.enter("k", 8))
		}
		if !turn(all[0]) || turn(all[1]) {
			t.Fatal("not only the first has its turn")
		}
		all[0].left = 3 * 8
		all[0].leave()
		for i, want := range []bool{1: true, true, true, false, false} {
			if i > 0 && turn(all[i]) != want {
				t.Errorf("with enough for three: %d has its turn is %v", i, !want)
			}
		}
		if !all[1].refused(time.Second) || all[2].refused(time.Second) {
			t.Error("two heads, or none")
		}
		all[3].leave()
		if turn(all[2]) || turn(all[4]) {
			t.Error("others ask beside a head")
		}
		all[1].leave()
		if !turn(all[2]) || turn(all[4]) {
			t.Error("who was refused beside the head is not the next")
		}
		for _, i := range []int{4, 2, 5} {
			all[i].leave()
		}
		if len(lines.byKey) != 0 {
			t.Error("there is a line")
		}
	})
}

func TestWhoLeavesALineIsInNobodysWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines lines
		first := lines.enter("k", 8)
		if ok, err := first.wait(t.Context(), 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			p := lines.enter("k", 8)
			defer p.leave()
			_, err := p.wait(ctx, time.Hour)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if in := lines.byKey["k"]; in == nil || in.bits != 8 || in.users != 1 {
			t.Errorf("the line is %+v", in)
		}
		first.leave()
		if len(lines.byKey) != 0 {
			t.Error("there is a line")
		}
	})
}
