//go:build ignore

// The classifier of the kernel datapath: sends each packet to the HTB class
// that the policy's rules give its flow. Its answers are those of package
// classify; what costs a lookup there costs one here, whatever the number of
// rules. See compile.go for what the maps hold, and "make bpf" for the build.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_GROUPS 32 // of rules that use the same keys; compile.go has the same
#define MAX_HEADERS 8 // tags before the IP header, extension headers after it

// Keys that a group's rules use.
#define PROTO  (1 << 0)
#define SPORT  (1 << 1)
#define DPORT  (1 << 2)
#define SRC    (1 << 3)
#define DST    (1 << 4)
#define DSCP   (1 << 5)
#define FWMARK (1 << 6)

// Later than every rule.
#define NO_RULE 0xffffffffULL
#define NONE    (NO_RULE << 32 | NO_RULE)

// What parsing comes to.
enum outcome { FLOW, CONTROL, OTHER };

struct address {
	__u8 family; // 4, 6
	__u8 bytes[16];
};

struct flow {
	struct address src, dst;
	__u32 mark;
	__u16 sport, dport; // 0 for none
	__u8 proto, dscp;
};

// A group has the tables from a value to the set of its rules that accept it:
// 0 is none of them. Groups are in the order of their first rule.
struct group {
	__u32 first; // rule; all ones ends the list
	__u32 keys;
	__u32 sport, dport; // which of the port tables
	__u16 proto[256];
	__u16 dscp[64];
};

struct port_table {
	__u16 set[65536];
};

// Everything is there for two generations of the rules: a packet sees the one or
// the other. Where a map's key has no number to begin with, it has its
// generation and group.
struct owner {
	__u8 generation, group, side, family;
};

struct prefix {
	__u32 bits; // of what follows
	struct owner of;
	__u8 address[16];
};

struct mark {
	struct owner of;
	__u32 mark;
};

struct combination {
	struct owner of;
	__u16 proto, sport, dport, src, dst, dscp, mark, unused;
};

struct decision {
	__u32 rule;
	__u32 minor;
};

struct settings {
	__u32 control, other; // minors of the control class and of what no rule takes
	__u8 fingerprint[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} generation SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * MAX_GROUPS);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct port_table);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, struct mark);
	__type(value, __u32);
} marks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, struct combination);
	__type(value, struct decision);
} combinations SEC(".maps");

// load reads from the packet, relative to the link's or the network's header.
static __always_inline int load(struct __sk_buff *skb, __u32 at, void *to, __u32 n, __u32 from)
{
	if (!bpf_skb_load_bytes_relative(skb, at, to, n, from))
		return 0;
	// What is not in the packet's first piece has to be brought there.
	__u32 want = skb->len < 256 ? skb->len : 256;
	if (bpf_skb_pull_data(skb, want))
		return -1;
	return bpf_skb_load_bytes_relative(skb, at, to, n, from);
}

static __always_inline int is_control(__u16 protocol)
{
	switch (protocol) {
	case 0x0806: // ARP
	case 0x8035: // RARP
	case 0x8809: // LACP and other slow protocols
	case 0x8863: // PPPoE discovery
	case 0x888e: // EAPOL
	case 0x88cc: // LLDP
		return 1;
	}
	return protocol < 1536; // a length: spanning tree and the like
}

// set_address takes an IPv4 address in IPv6 for the IPv4 address that it is.
static __always_inline void set_address(struct address *a, const __u32 *v6)
{
	if (!v6[0] && !v6[1] && v6[2] == bpf_htonl(0xffff)) {
		a->family = 4;
		__builtin_memcpy(a->bytes, &v6[3], 4);
		return;
	}
	a->family = 6;
	__builtin_memcpy(a->bytes, v6, 16);
}

// Functions that are neither static nor inline are verified once and by
// themselves, not at each call: their pointers may be anything to the verifier.

// transport reads the ports, where the packet has some and they are there, and
// tells control traffic by them.
__noinline int transport(struct __sk_buff *skb, struct flow *f, __u32 at, __u32 from)
{
	__u16 port[2];

	if (!f)
		return OTHER;
	switch (f->proto) {
	case 58: { // ICMPv6: all but pings
		__u8 type;
		if (load(skb, at, &type, 1, from))
			return FLOW;
		return f->src.family == 6 && type != 128 && type != 129 ? CONTROL : FLOW;
	}
	case 6: case 17: case 132: case 136:
		if (load(skb, at, port, 4, from))
			return FLOW;
		f->sport = bpf_ntohs(port[0]);
		f->dport = bpf_ntohs(port[1]);
	}
	if (f->proto == 17) { // DHCP
		if ((f->sport == 67 || f->sport == 68) && (f->dport == 67 || f->dport == 68))
			return CONTROL;
		if ((f->sport == 546 || f->sport == 547) && (f->dport == 546 || f->dport == 547))
			return CONTROL;
	}
	return FLOW;
}

// extension goes past a header that stands between IP and transport. It
// returns its length, 0 where what follows is no such header, -1 where it is cut
// short (then the flow is what is known until there), and sets *later where it
// says that this is not the first fragment.
static __always_inline int extension(struct __sk_buff *skb, __u8 *proto, __u32 at, __u32 from, int *later)
{
	__u8 h[4], last;
	int n;

	switch (*proto) {
	case 0: case 43: case 44: case 51: case 60:
		break;
	default:
		return 0;
	}
	if (load(skb, at, h, 4, from))
		return -1;
	switch (*proto) {
	case 44: // fragment
		n = 8;
		break;
	case 51: // authentication
		n = (h[1] + 2) * 4;
		break;
	default:
		n = (h[1] + 1) * 8;
	}
	if (load(skb, at + n - 1, &last, 1, from))
		return -1;
	if (*proto == 44)
		*later = (h[2] << 8 | (h[3] & 0xf8)) != 0;
	*proto = h[0];
	return n;
}

__noinline int parse_ipv4(struct __sk_buff *skb, struct flow *f, __u32 at, __u32 from)
{
	__u8 h[20];
	int later;

	if (!f || load(skb, at, h, 20, from) || h[0] >> 4 != 4 || (h[0] & 15) < 5)
		return OTHER;
	f->dscp = h[1] >> 2;
	f->proto = h[9];
	f->src.family = f->dst.family = 4;
	__builtin_memcpy(f->src.bytes, h + 12, 4);
	__builtin_memcpy(f->dst.bytes, h + 16, 4);
	if ((h[6] & 0x1f) | h[7])
		return FLOW; // a later fragment
	// What is behind the packet's own end is padding. An offloaded packet may have no length.
	__u32 length = (h[0] & 15) * 4, total = h[2] << 8 | h[3];
	__u32 end = total >= length ? at + total : at + 0x10000;
	at += length;
	if (f->proto == 51) {
		__u8 proto = f->proto;
		int n = extension(skb, &proto, at, from, &later);
		if (n < 0 || at + n > end)
			return FLOW;
		f->proto = proto;
		at += n;
	}
	return at + 4 <= end ? transport(skb, f, at, from) : FLOW;
}

__noinline int parse_ipv6(struct __sk_buff *skb, struct flow *f, __u32 at, __u32 from)
{
	__u32 h[10];
	int later = 0;

	if (!f || load(skb, at, h, 40, from) || *(__u8 *)h >> 4 != 6)
		return OTHER;
	f->dscp = bpf_ntohl(h[0]) >> 22 & 63;
	f->proto = bpf_ntohl(h[1]) >> 8 & 0xff;
	set_address(&f->src, h + 2);
	set_address(&f->dst, h + 6);
	at += 40;
	for (int i = 0; i < MAX_HEADERS; i++) {
		int n = extension(skb, &f->proto, at, from, &later);
		if (n < 0)
			return FLOW;
		if (n == 0)
			return transport(skb, f, at, from);
		if (later)
			return FLOW;
		at += n;
	}
	return OTHER;
}

// parse reads the packet's flow. Where the kernel says that the network's
// header is IP, that is read; else what stands before it.
static __always_inline int parse(struct __sk_buff *skb, struct flow *f)
{
	__u16 protocol = bpf_ntohs(skb->protocol), word;
	__u32 at = 0, from = BPF_HDR_START_NET;

	if (protocol == 0x8100 || protocol == 0x88a8 || protocol == 0x8864) {
		from = BPF_HDR_START_MAC;
		at = 12;
		for (int i = 0; i < MAX_HEADERS; i++) {
			if (load(skb, at, &word, 2, from))
				return OTHER;
			protocol = bpf_ntohs(word);
			at += 2;
			if (protocol != 0x8100 && protocol != 0x88a8)
				break;
			at += 2;
		}
		if (protocol == 0x8864) { // PPPoE session
			if (load(skb, at + 6, &word, 2, from))
				return OTHER;
			at += 8;
			protocol = bpf_ntohs(word);
			if (protocol >= 0x8000) // LCP, IPCP and the like
				return CONTROL;
			protocol = protocol == 0x21 ? 0x0800 : protocol == 0x57 ? 0x86dd : 0xffff;
		}
	}
	if (protocol == 0x0800)
		return parse_ipv4(skb, f, at, from);
	if (protocol == 0x86dd)
		return parse_ipv6(skb, f, at, from);
	return is_control(protocol) ? CONTROL : OTHER;
}

static __always_inline __u16 by_port(__u32 table, __u16 port)
{
	struct port_table *t = bpf_map_lookup_elem(&ports, &table);

	return t && port ? t->set[port] : 0;
}

static __always_inline __u16 by_address(struct owner of, __u8 side, const struct address *a)
{
	struct prefix key = {.bits = 32 + 128, .of = of};

	key.of.side = side;
	key.of.family = a->family;
	__builtin_memcpy(key.address, a->bytes, 16);
	__u32 *set = bpf_map_lookup_elem(&prefixes, &key);
	return set ? *set : 0;
}

// match returns the first of a group's rules that takes the flow, with the
// minor of its class in the lower half.
__noinline __u64 match(struct flow *f, __u32 current, __u32 group)
{
	__u32 at = current * MAX_GROUPS + group;
	struct group *g = bpf_map_lookup_elem(&groups, &at);

	if (!f || !g)
		return NONE;
	struct combination key = {.of = {.generation = current, .group = group}};
	__u32 keys = g->keys;
	if (keys & PROTO && !(key.proto = g->proto[f->proto]))
		return NONE;
	if (keys & DSCP && !(key.dscp = g->dscp[f->dscp & 63]))
		return NONE;
	if (keys & SPORT && !(key.sport = by_port(g->sport, f->sport)))
		return NONE;
	if (keys & DPORT && !(key.dport = by_port(g->dport, f->dport)))
		return NONE;
	if (keys & SRC && !(key.src = by_address(key.of, 0, &f->src)))
		return NONE;
	if (keys & DST && !(key.dst = by_address(key.of, 1, &f->dst)))
		return NONE;
	if (keys & FWMARK) {
		struct mark mark = {.of = key.of, .mark = f->mark};
		__u32 *set = bpf_map_lookup_elem(&marks, &mark);
		if (!set)
			return NONE;
		key.mark = *set;
	}
	struct decision *d = bpf_map_lookup_elem(&combinations, &key);
	return d ? (__u64)d->rule << 32 | d->minor : NONE;
}

// decide returns the minor of the class for a flow, by the first rule that takes it.
static __always_inline __u32 decide(struct flow *f, __u32 current, __u32 other)
{
	__u64 best = NO_RULE << 32 | other;

	for (__u32 i = 0; i < MAX_GROUPS; i++) {
		__u32 at = current * MAX_GROUPS + i;
		struct group *g = bpf_map_lookup_elem(&groups, &at);
		if (!g || g->first >= best >> 32)
			break;
		__u64 found = match(f, current, i);
		if (found < best)
			best = found;
	}
	return best;
}

// classid returns the minor of the packet's class, 0 when there are no tables.
static __always_inline __u32 classid(struct __sk_buff *skb)
{
	struct flow f = {};
	__u32 zero = 0;
	__u32 *now = bpf_map_lookup_elem(&generation, &zero);

	if (!now)
		return 0;
	__u32 current = *now & 1;
	struct settings *s = bpf_map_lookup_elem(&settings, &current);
	if (!s)
		return 0;
	f.mark = skb->mark;
	switch (parse(skb, &f)) {
	case FLOW:
		return decide(&f, current, s->other);
	case CONTROL:
		return s->control;
	}
	return s->other;
}

SEC("tc")
int classifier(struct __sk_buff *skb)
{
	skb->tc_classid = classid(skb);
	return TC_ACT_OK;
}

// probe is for tests: what BPF_PROG_TEST_RUN gives back has no tc_classid.
SEC("tc")
int probe(struct __sk_buff *skb)
{
	return classid(skb);
}

char LICENSE[] SEC("license") = "GPL";
