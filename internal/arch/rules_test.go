package arch

import (
	"slices"
	"strings"
)

// module is the path that our own imports begin with.
const module = "shaperd/"

// layers lists every package of ours, by folder, with those of ours that it
// may import. Imports point one way: nothing below knows what is above it.
var layers = map[string]struct {
	mayImport []string
	because   string
}{
	"shaper":   {nil, "the scheduler is arithmetic on values; whoever uses it brings the traffic"},
	"classify": {nil, "a classifier maps a flow to a name and needs to know no rates"},

	"configs": {[]string{"classify", "internal/near", "shaper"}, "configs yields plain values; what enforces them must not leak into what they mean"},
	"conn":    {[]string{"classify", "shaper"}, "the relay takes values, so that it can be used and tested without a policy file"},
	"netlink": {[]string{"classify", "netlink/bpf", "netlink/packettest", "netlink/u32", "shaper"}, "the two datapaths share a policy and nothing else"},

	"netlink/bpf":        {[]string{"classify", "netlink/packettest"}, "it compiles rules and runs them; what is attached where is netlink's"},
	"netlink/u32":        {[]string{"classify"}, "it compiles rules to filters; who adds them where is netlink's business"},
	"netlink/packettest": {[]string{"classify"}, "it makes packets and rules for tests, whatever classifies them"},

	"internal/httpd":         {[]string{"internal/near"}, "it bounds what clients may take, whatever is served"},
	"internal/metrics":       {[]string{"internal/httpd", "shaper"}, "collectors read snapshots; they start and own nothing"},
	"internal/admin":         {[]string{"internal/httpd", "internal/near"}, "it knows requests and answers; who does what is asked is the daemon's business"},
	"internal/admission":     {[]string{"internal/near", "internal/store", "internal/store/storetest", "shaper"}, "it decides on values; who asks, over what, is no business of it"},
	"internal/admission/api": {[]string{"internal/admission", "internal/httpd", "internal/near", "internal/secret", "internal/store", "shaper"}, "it is requests and answers; whose classes they are is the daemon's business"},
	"internal/figures":       {nil, "it writes numbers, whatever they count"},
	"internal/near":          {nil, "it compares words, whatever they name"},
	"internal/secret":        {nil, "it reads small files, whatever they hold"},
	"internal/top":           {[]string{"internal/admin", "internal/figures", "shaper"}, "a live view of what a daemon answers; it needs no policy and no datapath"},
	"systemd":                {nil, "it passes words to systemd and knows nothing of who serves what"},
	"internal/daemon":        {[]string{"classify", "configs", "conn", "internal/admin", "internal/admission", "internal/admission/api", "internal/httpd", "internal/lease", "internal/metrics", "internal/page", "internal/store", "netlink", "shaper", "systemd"}, "composition: the only place that knows all parts"},
	"internal/page":          {[]string{"internal/admin"}, "it shows a status to everyone; who has one to show is the daemon's business"},
	"internal/lab":           {[]string{"internal/measure", "shaper"}, "it builds hosts and sends traffic, whatever shapes it"},
	"internal/measure":       {nil, "it times what arrives, whoever sent it"},
	"internal/doctor":        {[]string{"classify", "configs", "internal/secret", "internal/store", "internal/store/storetest", "netlink", "shaper"}, "it compares a policy with a host; whoever serves or prints is no business of it"},
	"internal/demo":          {[]string{"classify", "configs", "conn", "internal/lab", "internal/measure", "shaper"}, "the demo drives the relay and the daemon as any program would"},
	"internal/lease":         {[]string{"internal/store", "internal/store/storetest", "shaper"}, "it divides rates; who sends what, and who limits it, is told by the caller"},
	"client":                 {[]string{"internal/admission", "internal/admission/api", "shaper"}, "programs of others import it: it is the standard library and HTTP"},
	"cmd/shaperd":            {[]string{"classify", "client", "configs", "internal/admin", "internal/daemon", "internal/demo", "internal/doctor", "internal/figures", "internal/near", "internal/secret", "internal/store/storetest", "internal/top", "netlink", "shaper"}, "commands read files, call one function and print"},

	"internal/store":           {[]string{"internal/secret", "internal/store/storetest"}, "it reaches a Redis and runs scripts; what they keep there is their owners' business"},
	"internal/store/storetest": {nil, "it runs servers for tests, whatever they store"},

	"internal/bench/admission": {[]string{"internal/admission", "internal/store"}, "measures admission beside its peers"},
	"internal/bench/kernel":    {[]string{"classify", "configs", "internal/lab", "netlink", "netlink/bpf", "shaper"}, "measures the kernel's datapath, as a whole and its classifier"},
	"internal/bench/relay":     {[]string{"internal/measure", "shaper"}, "measures the relay from outside"},
	"internal/systemdtest":     {nil, "it tests packages and units from outside"},
	"internal/vm":              {nil, "it tests the kernel that other tests run on"},
	"monitoring":               {[]string{"internal/metrics"}, "it compares alerts and dashboard with the table of metrics; the daemon runs as a program"},
	"internal/arch":            {[]string{"configs", "conn", "internal/metrics"}, "it compares the docs with what is exported and loaded"},
}

// A ban keeps an import out of all packages but some.
type ban struct {
	imports []string // paths; "x/..." is x and all below it
	in      []string // folders the ban holds in, in the same form; nil is everywhere
	except  []string // folders that may
	tests   bool     // holds for test files too
	because string
}

var bans = []ban{
	{
		imports: []string{"net", "net/http/...", "net/rpc/...", "net/smtp", "os/...", "io/fs", "syscall", "log/...", "time/tzdata", "golang.org/...", "github.com/..."},
		in:      []string{"shaper"},
		because: "shaper is the standard library without I/O: every test of it runs in virtual time",
	},
	{
		imports: []string{"net", "net/http/...", "syscall", "log/...", "golang.org/..."},
		in:      []string{"classify"},
		because: "classifying a flow does no I/O: whoever has the packet passes its bytes",
	},
	{
		imports: []string{"github.com/vishvananda/netlink/..."},
		except:  []string{"netlink/...", "internal/lab"}, tests: true,
		because: "its units differ from the kernel's and from ours; one package converts (lab builds devices, and knows no rates)",
	},
	{
		imports: []string{"github.com/cilium/ebpf/..."},
		except:  []string{"netlink/bpf"}, tests: true,
		because: "programs and maps have one owner; others see a classifier",
	},
	{
		imports: []string{"github.com/spf13/..."},
		except:  []string{"cmd/shaperd"}, tests: true,
		because: "flags are the program's surface; a package takes values",
	},
	{
		imports: []string{"charm.land/...", "github.com/charmbracelet/..."},
		except:  []string{"internal/top"}, tests: true,
		because: "drawing on a terminal is the live view's; commands print lines, which pipes and logs keep",
	},
	{
		imports: []string{"github.com/goccy/go-yaml/..."},
		except:  []string{"configs"}, tests: true,
		because: "YAML shapes never leave configs",
	},
	{
		imports: []string{"github.com/google/gopacket/..."},
		except:  []string{"classify"},
		because: "packets are decoded in one place, which is fuzzed",
	},
	{
		imports: []string{"github.com/prometheus/..."},
		except:  []string{"internal/metrics"},
		because: "counters are plain fields where they are counted; metrics reads snapshots",
	},
	{
		imports: []string{"github.com/coreos/go-systemd/..."},
		except:  []string{"systemd"}, tests: true,
		because: "what systemd wants to be told, and how, is one package's business",
	},
	{
		imports: []string{"github.com/redis/..."},
		except:  []string{"internal/bench/admission", "internal/store", "internal/store/storetest"}, tests: true,
		because: "deadlines, the circuit breaker and what an error means are one package's; others run scripts",
	},
	{
		imports: []string{"github.com/chromedp/..."},
		except:  []string{"internal/page"}, tests: true,
		because: "a browser tests the page, and nothing of it is in the program",
	},
	{
		imports: []string{"shaperd/internal/...", "shaperd/shaper"},
		in:      []string{"client"},
		because: "programs of others import it, and get nothing of the daemon's",
	},
	{
		imports: []string{"golang.org/x/time/...", "github.com/juju/ratelimit/...", "github.com/throttled/..."},
		except:  []string{"internal/bench/admission"},
		because: "contenders in benchmarks only: the product's limiter is shaper's",
	},
}

// socketCalls are functions of the packages unix and syscall that only
// socketPackages may call. Others may use those packages for the rest: limits
// of the process, signals, clocks.
var (
	socketCalls = []string{
		"Accept", "Bind", "Connect", "Epoll", "Getpeername", "Getsockname", "Getsockopt", "Listen", "Pipe2", "Recv",
		"Send", "Setsockopt", "Shutdown", "Socket", "Splice", "SYS_ACCEPT", "SYS_EPOLL", "SYS_GETSOCKOPT", "SYS_RECV",
		"SYS_SEND", "SYS_SETSOCKOPT", "SYS_SPLICE",
	}
	socketPackages = []string{"conn", "internal/admin", "internal/bench/...", "internal/lab", "internal/measure", "netlink/..."}
	socketReason   = "one package owns descriptors, so that one can be read to know that none leaks or blocks"
)

const (
	maxLines      = 450
	maxLinesSince = "a file is one idea; split it by what its parts are for"
	docReason     = "a reader opens doc.go first: purpose, example, who owns and closes what"
)

// matches reports whether path is one of the patterns.
func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, subtree := strings.CutSuffix(p, "/...")
		return path == prefix || subtree && strings.HasPrefix(path, prefix+"/")
	})
}
