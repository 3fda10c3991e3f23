package conn

import (
	"net"
	"strconv"
)

// zoneID turns the zone of an IPv6 address, an interface's name or index, into its index; 0 when there is none.
func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if ifi, err := net.InterfaceByName(zone); err == nil {
		return uint32(ifi.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}

// zoneName is the inverse of zoneID. It keeps to the index, which needs no system call.
func zoneName(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
