package doctor

import "fmt"

// What an interface is like.

func checkState(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if !l.info.Up {
			return all(info(l.info.Name+" is down", "", fmt.Sprintf("ip link set dev %s up", l.info.Name)))
		}
		return all(ok("%s is up", l.info.Name))
	})
}

func checkQueues(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		switch {
		case l.info.Queues > 1 && l.info.RootKind == "mq":
			return all(info(fmt.Sprintf("%s has %d queues for what leaves (mq)", l.info.Name, l.info.Queues),
				"shaping puts one root in their place: all processors take turns at its lock", ""))
		case l.info.RootKind == "noqueue":
			return all(ok("%s has no queue of its own: packets wait in shaperd's", l.info.Name))
		}
		return all(ok("one root for what leaves"))
	})
}

// plainGSO is the largest offloaded packet without BIG TCP.
const plainGSO = 65536

func checkBigTCP(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if most := max(l.info.GSO, l.info.GRO); most > plainGSO {
			return all(warning(fmt.Sprintf("%s has offloaded packets up to %d bytes (BIG TCP)", l.info.Name, most),
				"a turn on the link is as long as such a packet, and bursts must hold one",
				fmt.Sprintf("ip link set dev %s gso_max_size %d gro_max_size %d", l.info.Name, plainGSO, plainGSO)))
		}
		return all(ok("no packets above 64 KiB"))
	})
}

func checkLRO(f *Facts) []Finding {
	return f.forAll(func(l shapedLink) []Finding {
		if !l.info.LRO {
			return all(ok("LRO is off"))
		}
		return all(warning(l.info.Name+" has LRO on", "packets that arrive are merged past recognition: not for what is forwarded",
			fmt.Sprintf("ethtool -K %s lro off", l.info.Name)))
	})
}
