package configs

import (
	"fmt"
	"strings"
	"testing"
)

// listening is a policy with a relay on each of the lists of addresses, and metrics.
func listening(metrics string, lists ...string) string {
	var b strings.Builder
	b.WriteString("relays:\n")
	for i, l := range lists {
		fmt.Fprintf(&b, "  - {name: r%d, kind: socks5, listen: [%s]}\n", i, l)
	}
	return b.String() + "metrics: {listen: \"" + metrics + "\"}\n"
}

func TestListenersThatTheKernelTakesTogether(t *testing.T) {
	for _, text := range []string{
		listening("off", `"0.0.0.0:80", "[::]:80"`), // the wildcard of IPv6 keeps to IPv6 then
		listening("off", `"[::]:80"`, `"127.0.0.1:81"`),
		listening("off", `"127.0.0.1:80"`, `"127.0.0.2:80"`),
		listening("off", `"127.0.0.1:0"`, `"127.0.0.1:0", "0.0.0.0:0"`),
		listening("127.0.0.1:0", `"127.0.0.1:0"`),
		listening("off", `"[fe80::1%eth0]:80"`, `"[fe80::1%eth1]:80"`),
		listening("127.0.0.1:81", `"127.0.0.1:80"`),
	} {
		parse(t, text)
	}
}

func TestListenersThatTheKernelRefusesTogether(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{listening("off", `"127.0.0.1:80", "127.0.0.1:80"`), "127.0.0.1:80 is taken by 127.0.0.1:80 on line 2"},
		{listening("off", `"127.0.0.1:80", "0.0.0.0:80"`), "0.0.0.0:80 is taken by 127.0.0.1:80 on line 2"},
		{listening("off", `"0.0.0.0:80"`, `"127.0.0.1:80"`), "127.0.0.1:80 is taken by 0.0.0.0:80 on line 2"},
		{listening("off", `"[::]:80"`, `"127.0.0.1:80"`), "127.0.0.1:80 is taken by [::]:80 on line 2"},
		{listening("off", `"[::1]:80"`, `"[::]:80"`), "[::]:80 is taken by [::1]:80 on line 2"},
		{listening("0.0.0.0:80", `"127.0.0.1:80"`), "0.0.0.0:80 is taken by 127.0.0.1:80 on line 2"},
		{listening("127.0.0.1:80", `"[::]:80"`), "127.0.0.1:80 is taken by [::]:80 on line 2"},
	} {
		if all := refuse(t, tt.text); len(all) != 1 || all[0].Message != tt.want {
			t.Errorf("got %v, want %s, for:\n%s", all, tt.want, tt.text)
		}
	}
}

// forwarding is a policy whose relay i listens on port 8000+i and has the ports of row i as upstreams.
func forwarding(rows ...[]int) string {
	var b strings.Builder
	b.WriteString("relays:\n")
	for i, ports := range rows {
		fmt.Fprintf(&b, "  - name: r%d\n    listen: 127.0.0.1:%d\n    upstream:\n", i, 8000+i)
		for _, p := range ports {
			fmt.Fprintf(&b, "      - localhost:%d\n", p)
		}
	}
	return b.String()
}

func TestRelaysMayNotLeadToThemselves(t *testing.T) {
	parse(t, forwarding([]int{8001}, []int{8002}, []int{443})) // a chain ends
	parse(t, forwarding([]int{8002}, []int{8002}, []int{443}))
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"itself":           {forwarding([]int{443, 8000}), 1},
		"ring":             {forwarding([]int{8001}, []int{8002}, []int{8000}), 3},
		"tail into a ring": {forwarding([]int{8001}, []int{8002}, []int{8001}), 2},
	} {
		if all := refuse(t, tt.text); len(all) != tt.want {
			t.Errorf("%s: got %v, want %d errors", name, all, tt.want)
		}
	}
}

// The ways through such relays are more than anyone could go.
func TestManyRelaysBehindEachOtherAreReadSoon(t *testing.T) {
	var rows [][]int
	for i := range 30 {
		var later []int
		for j := i + 1; j < 30; j++ {
			later = append(later, 8000+j)
		}
		rows = append(rows, append(later, 443))
	}
	parse(t, forwarding(rows...))
}
