package daemon

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"shaperd/configs"
	"shaperd/conn"
)

func TestNothingOfThePolicyIsLost(t *testing.T) {
	var p configs.Policy
	fill(reflect.ValueOf(&p).Elem())
	c := reflect.ValueOf(relayConfig(&p, &p.Relays[0]))
	var check func(path string, v reflect.Value)
	check = func(path string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("%s is zero", path)
		}
		if v.Kind() == reflect.Struct && strings.HasPrefix(v.Type().PkgPath(), "shaperd/conn") {
			for i := range v.NumField() {
				check(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	check("Config", c)
	if got := relayConfig(&p, &p.Relays[0]).Marks["x"]; got != conn.Mark(p.Marks["x"]) {
		t.Errorf("mark %+v, want %+v", got, p.Marks["x"])
	}
}

// fill makes every field of v that it can reach differ from zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[netip.AddrPort]() {
			v.Set(reflect.ValueOf(netip.MustParseAddrPort("192.0.2.1:80")))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && f.Type() != reflect.TypeFor[netip.Prefix]() && v.Type().Field(i).Name != "Children" {
				fill(f)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k)
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else if v.CanUint() {
			v.SetUint(1)
		}
	}
}

func TestEveryReasonIsExportedFromTheStart(t *testing.T) {
	m := relayMetrics(conn.Stats{})
	if got, want := len(m.Closed), conn.NumClosings; got != want {
		t.Errorf("%d reasons of closing, want %d: %v", got, want, m.Closed)
	}
	if got, want := len(m.Refused), conn.NumRefusals-1; got != want { // but not of those not refused
		t.Errorf("%d reasons of refusal, want %d: %v", got, want, m.Refused)
	}
}

func TestRunningRelaysAreFoundAgain(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"no change", "a=1 b=2", "a=1 b=2", "a b"},
		{"another order", "a=1 b=2", "b=2 a=1", "b a"},
		{"new relay", "a=1", "a=1 b=2", "a -"},
		{"removed relay", "a=1 b=2", "b=2", "b"},
		{"another name", "a=1", "b=1", "a"},
		{"another address", "a=1", "a=2", "a"},
		{"one more address", "a=1", "a=1,2", "a"},
		{"addresses swapped", "a=1 b=2", "a=2 b=1", "b a"},
		{"old address to a new relay", "a=1", "b=1 a=2", "a -"},
		{"address shared by name first", "a=1 b=2", "b=1,2 a=3", "b a"},
		{"any port is no common address", "a=0 b=0", "b=0 a=0", "b a"},
		{"nothing in common", "a=1", "b=2", "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d daemon
			for _, r := range parseRelays(tt.before) {
				d.relays = append(d.relays, &relay{config: conn.Config{Name: r.Name, Listen: r.Listen}})
			}
			var got []string
			for _, r := range d.match(&configs.Policy{Relays: parseRelays(tt.after)}) {
				if r == nil {
					got = append(got, "-")
				} else {
					got = append(got, r.config.Name)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("continued %v, want %v", got, tt.want)
			}
		})
	}
}

// parseRelays reads name=port,port ...
func parseRelays(s string) (all []configs.Relay) {
	for one := range strings.FieldsSeq(s) {
		name, ports, _ := strings.Cut(one, "=")
		r := configs.Relay{Name: name}
		for p := range strings.SplitSeq(ports, ",") {
			r.Listen = append(r.Listen, netip.MustParseAddrPort("127.0.0.1:"+p))
		}
		all = append(all, r)
	}
	return all
}

// A testTask is a task that does what it is told.
type testTask struct {
	readiness
	run func(context.Context) error
}

func (t testTask) Run(ctx context.Context) error { return t.run(ctx) }
func (t testTask) String() string                { return "test" }

func TestTaskThatFailsEndsAllOthers(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		run  func(context.Context) error
		want error
	}{
		{"error", func(context.Context) error { return broken }, broken},
		{"return", func(context.Context) error { return nil }, errEnded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ts := newTasks(t.Context())
			other := ts.start(testTask{run: func(ctx context.Context) error { <-ctx.Done(); return nil }})
			ts.start(testTask{run: tt.run})
			<-other.ended
			if err := ts.group.Wait(); !errors.Is(err, tt.want) || !strings.HasPrefix(err.Error(), "test: ") {
				t.Errorf("Wait = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestStoppedTaskLeavesTheOthersAlone(t *testing.T) {
	ts := newTasks(t.Context())
	wait := testTask{run: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	one, two := ts.start(wait), ts.start(wait)
	one.stop()
	<-one.ended
	if ts.ctx.Err() != nil {
		t.Error("the others are ended too")
	}
	two.stop()
	if err := ts.group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestJoinedErrorsAreToldApart(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	if got := Reasons(errors.Join(a, errors.Join(b, c))); !reflect.DeepEqual(got, []error{a, b, c}) {
		t.Errorf("Reasons = %v", got)
	}
	if got := Reasons(nil); got != nil {
		t.Errorf("Reasons(nil) = %v", got)
	}
}
