package netlink

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An ethtool asks drivers which offloads are on. Asking needs no privileges.
type ethtool struct{ fd int }

const (
	ethSSFeatures  = 4  // ETH_SS_FEATURES
	ethStringLen   = 32 // ETH_GSTRING_LEN
	ethFeatureSets = 16 // words of 32 features: more than any kernel has
)

func openEthtool() (ethtool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ethtool{}, fmt.Errorf("open ethtool: %w", err)
	}
	return ethtool{fd}, nil
}

func (e ethtool) close() { _ = unix.Close(e.fd) }

// feature reports whether the named feature of a device is on; false also where
// the driver does not say.
func (e ethtool) feature(device, name string) bool {
	at := e.index(device, name)
	if at < 0 {
		return false
	}
	// struct ethtool_gfeatures with its blocks: available, requested, active, never_changed
	buf := make([]byte, 8+ethFeatureSets*16)
	native.PutUint32(buf, unix.ETHTOOL_GFEATURES)
	native.PutUint32(buf[4:], ethFeatureSets)
	if e.ask(device, buf) != nil {
		return false
	}
	return u32At(buf, 8+at/32*16+8)>>(at%32)&1 == 1
}

// index returns the number of a feature, -1 when the device has none of that name.
func (e ethtool) index(device, name string) int {
	// struct ethtool_gstrings; the kernel writes as many strings as it has, which fit
	buf := make([]byte, 12+ethFeatureSets*32*ethStringLen)
	native.PutUint32(buf, unix.ETHTOOL_GSTRINGS)
	native.PutUint32(buf[4:], ethSSFeatures)
	if e.ask(device, buf) != nil {
		return -1
	}
	for i := range int(min(u32At(buf, 8), ethFeatureSets*32)) {
		text := buf[12+i*ethStringLen:][:ethStringLen]
		if end := bytes.IndexByte(text, 0); end >= 0 && string(text[:end]) == name {
			return i
		}
	}
	return -1
}

// ask has the driver answer in buf, which begins with the command.
func (e ethtool) ask(device string, buf []byte) error {
	var ifr struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(ifr.name[:unix.IFNAMSIZ-1], device)
	ifr.data = unsafe.Pointer(&buf[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr)))
	runtime.KeepAlive(buf)
	if errno != 0 {
		return errno
	}
	return nil
}
