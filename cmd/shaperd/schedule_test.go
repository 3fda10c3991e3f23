package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"shaperd/classify"
	"shaperd/configs"
)

// What is in force at a time, and what schedules change next. At noon both
// directions of the proxy are alike, and at night they are not.
func TestSchedulesAreShown(t *testing.T) {
	t.Chdir(testdata)
	noon := time.Date(2026, time.March, 2, 11, 0, 0, 0, time.UTC) // a Monday, in Berlin an hour later
	night := noon.Add(11 * time.Hour)
	p, err := configs.Load("schedule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, now := range map[string]time.Time{"noon": noon, "night": night} {
		var text bytes.Buffer
		r := checkFile("schedule.yaml", now)
		r.print(&text, &text, false, true)
		golden(t, "check-schedule-"+name+".txt", text.String())
		for flow, to := range map[string]uint16{"backup": 873, "rest": 80} {
			e, err := explain(p, classify.Flow{Proto: classify.TCP, Dst: port(to)}, now)
			if err != nil {
				t.Fatal(err)
			}
			text.Reset()
			e.print(&text)
			golden(t, "explain-schedule-"+name+"-"+flow+".txt", text.String())
		}
	}
	e, err := explain(p, classify.Flow{Proto: classify.TCP, Dst: port(873)}, noon)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, v := range []any{checkFile("schedule.yaml", noon).Policy.scheduleView, e} {
		if err := printJSON(&text, v); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "schedule-json.txt", text.String())
}

func TestSchedulesAreShownByTheCommands(t *testing.T) {
	for _, args := range []string{"check schedule.yaml", "explain schedule.yaml --dst :873"} {
		got := output(t, 0, strings.Fields(args)...)
		if !strings.Contains(got, "rates as of ") || !strings.Contains(got, "next change: ") {
			t.Errorf("shaperd %s says nothing of the schedule:\n%s", args, got)
		}
	}
	var results []struct{ Policy scheduleView }
	if err := json.Unmarshal([]byte(output(t, 0, "check", "--json", "schedule.yaml")), &results); err != nil {
		t.Fatal(err)
	}
	var e scheduleView
	if err := json.Unmarshal([]byte(output(t, 0, "explain", "--json", "schedule.yaml", "--dst", ":873")), &e); err != nil {
		t.Fatal(err)
	}
	for _, v := range []scheduleView{results[0].Policy, e} {
		if v.TimeZone != "Europe/Berlin" || v.Next == nil || !v.Next.At.After(v.At) || len(v.Next.Changes) == 0 {
			t.Errorf("JSON has %+v", v)
		}
	}
}

// A schedule that always holds changes nothing, and is one all the same.
func TestAScheduleWithoutAnEnd(t *testing.T) {
	policy := file(t, "shaperd.yaml", strings.Replace(office, "egress: 100mbit", "egress: {rate: 100mbit, schedule: [{rate: 50mbit}]}", 1))
	if got := output(t, 0, "check", policy); !strings.Contains(got, "eth0 egress, 50mbit") || !strings.Contains(got, "next change: the schedule has none") {
		t.Errorf("check: %s", got)
	}
}

// What the kernel cannot pace is an error, at whatever time of the week it would be.
func TestCheckFindsWhatTheKernelRefuses(t *testing.T) {
	slow := strings.Replace(office, "egress: 100mbit", "egress: 7kbit", 1)
	slow = strings.NewReplacer("rate: 2mbit, ceil: 10mbit", "rate: 1kbit", "rate: 5mbit", "rate: 1kbit", "rate: 10mbit", "rate: 1kbit").Replace(slow)
	policy := file(t, "shaperd.yaml", slow)
	if got := output(t, 1, "check", policy); !strings.Contains(got, policy+":6: eth0 egress: 7kbit is less than the kernel can pace") {
		t.Errorf("check of a slow link: %s", got)
	}
	late := strings.Replace(office, "rate: 5mbit", `rate: 5mbit, schedule: [{from: "01:00", to: "01:01", rate: 7kbit}]`, 1)
	if got := output(t, 1, "check", file(t, "shaperd.yaml", late)); !strings.Contains(got, `class "backup": 7kbit is less than the kernel can pace`) {
		t.Errorf("check of a class that is slow for a minute: %s", got)
	}
}

func port(n uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, n) }
