package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"shaperd/internal/store"
	"shaperd/internal/store/storetest"
	"shaperd/shaper"
)

// A bench is a script on a server, whose time the test tells.
type bench struct {
	t     testing.TB
	redis *storetest.Server
	store *store.Store
	now   int64 // ms
}

func newBench(t testing.TB) *bench {
	t.Helper()
	r := storetest.Start(t)
	s, err := store.New(store.Options{Addrs: []string{r.Addr()}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &bench{t, r, s, 1_800_000_000_000}
}

var testKey = Key("edge", "web", "download")

const testLease = 2 * time.Second

func (b *bench) ask(r request) answer {
	b.t.Helper()
	if r.lease == 0 {
		r.lease, r.weight, r.version = testLease, 1, max(r.version, 1)
	}
	c := r.call(testKey)
	c.Args[timeArgument] = b.now
	if err := b.store.Do(context.Background(), c); err != nil {
		b.t.Fatal(err)
	}
	a, err := parse(c.Value)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func TestTheScriptRefusesBadArguments(t *testing.T) {
	b := newBench(t)
	good := request{id: "r1", seq: 1, lease: testLease, rate: shaper.Mbit, version: 1, weight: 1}.call(testKey)
	bad := map[int][]any{
		0:  {"", "RENEW", 1},
		1:  {"x", "-1", "1e300", "nan", "0x10"},
		2:  {"", "@"},
		3:  {"", "0", "-1", "nan", "inf", "1..2", strings.Repeat("9", 400)},
		4:  {"", "-1", "x"},
		5:  {"0", "x", "-2000"},
		6:  {"x", "-1", "9007199254740993"},
		7:  {"", "1", "x", "-0000000000000000001", strings.Repeat("1", 21)},
		8:  {"0", "-1", "nan"},
		9:  {"x", "-1"},
		10: {"x", "-1"},
		11: {"x", "-1"},
		12: {"x", "", "-1"},
	}
	for i, values := range bad {
		for _, v := range values {
			c := &store.Call{Script: script, Keys: good.Keys, Args: slices.Clone(good.Args)}
			c.Args[i] = v
			if err := b.store.Do(context.Background(), c); err == nil || !strings.HasPrefix(err.Error(), "SHAPERD argument ") {
				t.Errorf("argument %d is %q: %v, %v", i, v, c.Value, err)
			}
		}
		c := &store.Call{Script: script, Keys: good.Keys, Args: good.Args[:i]}
		if err := b.store.Do(context.Background(), c); err == nil || !strings.HasSuffix(err.Error(), " is missing") {
			t.Errorf("%d arguments: %v", i, err)
		}
	}
	if b.redis.Do("EXISTS", testKey) != int64(0) {
		t.Error("refused arguments have changed the state")
	}
	if err := b.store.Do(context.Background(), good); err != nil {
		t.Errorf("good arguments: %v", err)
	}
}

func TestAHashThatIsNotOursDoesNotStopTheScript(t *testing.T) {
	b := newBench(t)
	b.redis.Do("HSET", testKey, "@", "nonsense", "r9", "1 2 3", "r8", "")
	if a := b.ask(request{id: "r1", seq: 1, rate: shaper.Mbit}); a.flags&flagLearning == 0 || a.holders != 1 {
		t.Errorf("answer %+v", a)
	}
}

// learned starts a state and lets it learn.
func (b *bench) learned(rate shaper.Rate) {
	b.ask(request{id: "starter", seq: 1, rate: rate})
	b.ask(request{release: true, id: "starter", seq: 2, rate: rate})
	b.now += testLease.Milliseconds()
}

func TestADuplicateGetsTheAnswerAndChangesNothing(t *testing.T) {
	b := newBench(t)
	b.learned(100)
	one := request{id: "r1", seq: 5, rate: 100, waiting: true}
	first := b.ask(one)
	before := b.redis.Do("HGETALL", testKey)
	b.now += 100
	again := b.ask(one)
	if again.grant != first.grant || again.valid != first.valid-100*time.Millisecond {
		t.Errorf("%+v, then %+v", first, again)
	}
	older := one
	older.seq, older.held, older.waiting = 3, 100, false
	b.ask(older)
	if after := b.redis.Do("HGETALL", testKey); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the state has changed from %v to %v", before, after)
	}
}

func TestTimeNeverGoesBackButForAClockThatWasSet(t *testing.T) {
	b := newBench(t)
	b.learned(100)
	if a := b.ask(request{id: "r1", seq: 1, rate: 100, waiting: true}); a.grant != 100 {
		t.Fatalf("answer %+v", a)
	}
	b.now -= 1000
	b.ask(request{id: "r2", seq: 1, rate: 100, waiting: true})
	stored := b.redis.Do("HGET", testKey, "@").(string)
	if want := fmt.Sprint(b.now + 1000); !strings.HasPrefix(stored, want) {
		t.Errorf("the time is %s; want %s", stored, want)
	}
	b.now -= time.Hour.Milliseconds()
	if a := b.ask(request{id: "r2", seq: 2, rate: 100, waiting: true}); a.grant != 0 || a.flags&flagLearning == 0 {
		t.Errorf("after the clock was set back: %+v", a)
	}
	b.now += testLease.Milliseconds() / 2
	b.ask(request{id: "r2", seq: 3, rate: 100, waiting: true})
	b.now += testLease.Milliseconds() / 2
	if a := b.ask(request{id: "r2", seq: 4, rate: 100, waiting: true}); a.grant != 100 {
		t.Errorf("a lease time after the clock was set back: %+v", a)
	}
}

func TestAStateThatIsOlderThanALeaseLearns(t *testing.T) {
	b := newBench(t)
	b.learned(100)
	b.ask(request{id: "r1", seq: 1, rate: 100})
	old := b.redis.Do("DUMP", testKey)
	if a := b.ask(request{id: "r1", seq: 2, answered: 1, rate: 100, held: 1, claim: 1, waiting: true}); a.grant != 100 || a.flags&flagLearning != 0 {
		t.Fatalf("answer %+v", a)
	}
	b.redis.Do("RESTORE", testKey, 0, old, "REPLACE") // a failover that lost the last write
	if a := b.ask(request{id: "r1", seq: 3, answered: 2, rate: 100, held: 100, claim: 100, waiting: true}); a.grant != 100 || a.flags&flagLearning == 0 {
		t.Errorf("answer %+v", a)
	}
	if a := b.ask(request{id: "r2", seq: 1, rate: 100, waiting: true}); a.grant != 0 {
		t.Errorf("another is granted %v", a.grant)
	}
}

func TestTheServersTimeIsUsedWhereNoneIsGiven(t *testing.T) {
	b := newBench(t)
	c := request{id: "r1", seq: 1, lease: testLease, rate: 100, version: 1, weight: 1}.call(testKey)
	before := time.Now().Add(-time.Second).UnixMilli()
	if err := b.store.Do(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	var now, created int64
	if _, err := fmt.Sscan(b.redis.Do("HGET", testKey, "@").(string), &now, &created); err != nil || now < before || now != created {
		t.Errorf("the state is of %v, %v", now, err)
	}
	if ttl := b.redis.Do("PTTL", testKey).(int64); ttl <= 0 || ttl > time.Minute.Milliseconds() {
		t.Errorf("it expires in %v ms", ttl)
	}
}

func TestKeysHaveOneHashTag(t *testing.T) {
	for want, names := range map[string][3]string{
		"shaperd:{edge:web:download}:lease":      {"edge", "web", "download"},
		"shaperd:{e%7B%7D%3A%25:ü:egress}:lease": {"e{}:%", "ü", "egress"},
	} {
		if got := Key(names[0], names[1], names[2]); got != want {
			t.Errorf("key %q; want %q", got, want)
		}
	}
}

// FuzzTheScript has it never fail, nor grant more than the rate, whatever the arguments and the state.
func FuzzTheScript(f *testing.F) {
	f.Add("renew", "r1", "1", "0", "2000", "100", "00000000000000000001", "1.5", "0", "0", "0", "1", "1 1", "1 9999999999999 5 5 5 1 1.0 100 00000000000000000001")
	f.Add("release", "r2", "9", "8", "2000", "0", "00000000000000000000", "0.001", "50", "50", "1e9", "0", "", "")
	b := newBench(f)
	f.Fuzz(func(t *testing.T, action, id, seq, answered, lease, rate, version, weight, held, claim, demand, waiting, meta, other string) {
		ctx, client := context.Background(), b.store.Client()
		if err := errors.Join(client.Del(ctx, testKey).Err(), client.HSet(ctx, testKey, "@", meta, "other", other).Err()); err != nil {
			t.Fatal(err)
		}
		c := &store.Call{Script: script, Keys: []string{testKey}, Args: []any{
			action, b.now, id, seq, answered, lease, rate, version, weight, held, claim, demand, waiting}}
		if err := b.store.Do(context.Background(), c); err != nil {
			if !strings.HasPrefix(err.Error(), "SHAPERD argument ") {
				t.Fatal(err)
			}
			return
		}
		a, err := parse(c.Value)
		if err != nil {
			t.Fatal(err)
		}
		if id != "other" && (a.grant < 0 || a.grant > a.rate) {
			t.Errorf("granted %v of %v", a.grant, a.rate)
		}
	})
}
