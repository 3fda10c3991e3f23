package netlink

import "github.com/vishvananda/netlink/nl"

// stats are the kernel's counters of a qdisc or class; they only grow, but for the backlog and the tokens.
type stats struct {
	bytes, packets     uint64
	drops, overlimits  uint64
	backlog, queued    uint64 // bytes, packets: waiting now
	lent, borrowed     uint64 // packets, of an HTB class
	tokens, ceilTokens int64  // 64 ns ticks that an HTB class has saved
}

func parseStats(b []byte) (s stats) {
	attributes(b, func(typ uint16, value []byte) {
		switch typ {
		case nl.TCA_STATS_BASIC:
			s.bytes = u64At(value, 0)
			s.packets = max(s.packets, uint64(u32At(value, 8)))
		case nl.TCA_STATS_PKT64:
			s.packets = u64At(value, 0)
		case nl.TCA_STATS_QUEUE:
			s.queued, s.backlog = uint64(u32At(value, 0)), uint64(u32At(value, 4))
			s.drops, s.overlimits = uint64(u32At(value, 8)), uint64(u32At(value, 16))
		case nl.TCA_STATS_APP:
			if len(value) == 20 { // struct tc_htb_xstats
				s.lent, s.borrowed = uint64(u32At(value, 0)), uint64(u32At(value, 4))
				s.tokens, s.ceilTokens = int64(int32(u32At(value, 12))), int64(int32(u32At(value, 16)))
			}
		}
	})
	return s
}
