package lab

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func withLinks(do func(*vnl.Handle) error) error {
	links, err := vnl.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer links.Close()
	return do(links)
}

func up(links *vnl.Handle, name string, addrs ...string) error {
	link, err := links.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, a := range addrs {
		addr, err := vnl.ParseAddr(a)
		if err == nil {
			addr.Flags = unix.IFA_F_NODAD
			err = links.AddrAdd(link, addr)
		}
		if err != nil {
			return fmt.Errorf("%s: address %s: %w", name, a, err)
		}
	}
	return links.LinkSetUp(link)
}

// carry waits until a device has taken note that there is another end to its
// wire, which the kernel by itself may put off for a second: IPv6 sends nothing before.
func carry(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ask := struct{ command, up uint32 }{command: unix.ETHTOOL_GLINK}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&ask)}
	copy(request.name[:], name)
	for ask.up == 0 {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return fmt.Errorf("%s: ask whether it is connected: %w", name, errno)
		}
	}
	return nil
}

// An End is one end of a wire: a host's device and its addresses, as "10.0.0.1/24".
type End struct {
	Host, Device string
	Addrs        []string
}

// Join connects two hosts by a wire of MTU 1500 without a limit of its own.
func (l *Lab) Join(a, b End) error {
	peer := l.hosts[b.Host]
	if peer == nil {
		return fmt.Errorf("join %s to %s: there is no host %q", a.Host, b.Host, b.Host)
	}
	err := l.Do(a.Host, func() error {
		return withLinks(func(links *vnl.Handle) error {
			attrs := vnl.NewLinkAttrs()
			attrs.Name, attrs.MTU = a.Device, 1500
			wire := &vnl.Veth{LinkAttrs: attrs, PeerName: b.Device, PeerNamespace: vnl.NsFd(peer.ns.Fd())}
			if err := links.LinkAdd(wire); err != nil {
				return err
			}
			return up(links, a.Device, a.Addrs...)
		})
	})
	if err == nil {
		err = l.Do(b.Host, func() error {
			return withLinks(func(links *vnl.Handle) error {
				return errors.Join(up(links, b.Device, b.Addrs...), carry(b.Device))
			})
		})
	}
	if err == nil {
		err = l.Do(a.Host, func() error { return carry(a.Device) })
	}
	if err != nil {
		return fmt.Errorf("join %s to %s: %w", a.Host, b.Host, err)
	}
	return nil
}

// Route has a host send everything by these gateways.
func (l *Lab) Route(name string, via ...string) error {
	return l.Do(name, func() error {
		return withLinks(func(links *vnl.Handle) error {
			for _, gateway := range via {
				all := "0.0.0.0/0"
				if net.ParseIP(gateway).To4() == nil {
					all = "::/0"
				}
				_, dst, _ := net.ParseCIDR(all)
				if err := links.RouteAdd(&vnl.Route{Dst: dst, Gw: net.ParseIP(gateway)}); err != nil {
					return fmt.Errorf("%s: route by %s: %w", name, gateway, err)
				}
			}
			return nil
		})
	})
}

// Sink makes a device whose packets are gone once its qdisc lets them go, which
// leaves the qdisc's cost alone.
func (l *Lab) Sink(name, device string) error {
	err := l.Do(name, func() error {
		return withLinks(func(links *vnl.Handle) error {
			attrs := vnl.NewLinkAttrs()
			attrs.Name, attrs.MTU = device, 1500
			if err := links.LinkAdd(&vnl.Ifb{LinkAttrs: attrs}); err != nil {
				return err
			}
			return up(links, device)
		})
	})
	if err != nil {
		return fmt.Errorf("make device %s on %s: %w", device, name, err)
	}
	return nil
}

// RootQdisc returns the kind and the handle, as "1:", of the qdisc at a device's root.
func (l *Lab) RootQdisc(name, device string) (kind, handle string, err error) {
	err = l.Do(name, func() error {
		return withLinks(func(links *vnl.Handle) error {
			link, err := links.LinkByName(device)
			if err != nil {
				return err
			}
			list, err := links.QdiscList(link)
			for _, q := range list {
				if a := q.Attrs(); a.Parent == vnl.HANDLE_ROOT {
					kind, handle = q.Type(), vnl.HandleStr(a.Handle)
				}
			}
			return err
		})
	})
	if err != nil {
		return "", "", fmt.Errorf("root qdisc of %s on %s: %w", device, name, err)
	}
	return kind, handle, nil
}
