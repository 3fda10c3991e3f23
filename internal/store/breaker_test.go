package store

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAnOpenBreakerLetsOneProbeThroughAfterEachBackoff(t *testing.T) {
	b := &breaker{longest: DefaultBackoff, random: func() float64 { return 0.5 }} // three quarters of a backoff
	now := time.Unix(0, 0)
	away := &AwayError{What: "away"}
	fail := func() {
		t.Helper()
		ticket, refused := b.allow(now)
		if refused != nil {
			t.Fatalf("at %v: refused", now)
		}
		b.report(ticket, now, away, true)
	}
	for range tolerated {
		fail()
	}
	for i, ms := range []int{75, 150, 300, 600, 1200, 2250, 2250} {
		backoff := time.Duration(ms) * time.Millisecond
		if _, refused := b.allow(now.Add(backoff - 1)); refused != away {
			t.Fatalf("probe %d: allowed before the backoff's end", i)
		}
		now = now.Add(backoff)
		ticket, refused := b.allow(now)
		if refused != nil {
			t.Fatalf("probe %d: refused after the backoff", i)
		}
		if _, refused := b.allow(now); refused == nil {
			t.Fatalf("probe %d: another at the same time", i)
		}
		b.report(ticket, now, away, true)
	}
	now = now.Add(DefaultBackoff)
	ticket, _ := b.allow(now)
	b.report(ticket, now, nil, true)
	if b.last() != nil {
		t.Error("a problem after an answer")
	}
	for range tolerated - 1 {
		fail()
	}
	if _, refused := b.allow(now); refused != nil {
		t.Error("refused after fewer failures than are tolerated")
	}
}

func TestReportsOfBeforeDoNotChangeABreaker(t *testing.T) {
	b := newBreaker(DefaultBackoff)
	now := time.Unix(0, 0)
	old, _ := b.allow(now)
	for range tolerated {
		ticket, _ := b.allow(now)
		b.report(ticket, now, &AwayError{}, true)
	}
	b.report(old, now, nil, true)
	if _, refused := b.allow(now); refused == nil {
		t.Error("an answer to a request of before closed the breaker")
	}
	now = now.Add(DefaultBackoff)
	probe, _ := b.allow(now)
	b.report(probe, now, nil, false) // its caller gave up
	if _, refused := b.allow(now); refused != nil {
		t.Error("a probe whose caller gave up keeps others out")
	}
}

func TestARequestThatIsNotPermittedKeepsNoOtherOut(t *testing.T) {
	b := newBreaker(DefaultBackoff)
	now := time.Unix(0, 0)
	for range 2 * tolerated {
		ticket, refused := b.allow(now)
		if refused != nil {
			t.Fatal("refused")
		}
		b.report(ticket, now, &AwayError{local: true}, true)
	}
	if b.last() == nil {
		t.Error("no problem is known")
	}
}

func TestOldServersAreNamed(t *testing.T) {
	s, err := New(Options{Addrs: []string{"h"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Redis 3.2 and 4.0, and 7.0 as a replica within a script: verbatim.
	for text, want := range map[string]string{
		"ERR Error running script (call to f_1): @user_script:1: @user_script: 1: Write commands not allowed after non deterministic commands. " +
			"Call redis.replicate_commands() at the start of your script in order to switch to single commands replication mode.": "too old",
		"ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.": "a replica, which cannot be written to",
		"ERR invalid password":                              "wrong password",
		"ERR Client sent AUTH, but no password is set":      "it knows no password",
		"MISCONF Redis is configured to save RDB snapshots": "it does not take writes since it cannot save",
		"ERR max number of clients reached":                 "it takes no more clients",
		"BUSY Redis is busy running a script.":              "a script blocks it",
		"MASTERDOWN Link with MASTER is down":               "its master is down",
		"NOREPLICAS Not enough good replicas to write.":     "it does not take writes without replicas",
		"WRONGTYPE Operation against a key":                 "",
		"ERR value is not an integer or out of range":       "",
		"NOSCRIPT No matching script. Please use EVAL.":     "",
	} {
		got := ""
		if p := s.explain(serverError(text)); p != nil {
			got = p.What
		}
		if got != want {
			t.Errorf("%s\n got %q want %q", text, got, want)
		}
	}
	for version, want := range map[string]bool{"2.8.19": true, "4.0.14": true, "5.0.0": false, "7.0.15": false, "10.1": false, "": false} {
		if tooOld(version) != want {
			t.Errorf("version %q: too old is %v", version, !want)
		}
	}
	if s.explain(redis.Nil) != nil || s.explain(nil) != nil || s.explain(errors.New("x")) == nil {
		t.Error("no value is a problem, or a broken connection is none")
	}
}

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}
