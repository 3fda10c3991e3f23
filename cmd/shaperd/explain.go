package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"shaperd/classify"
	"shaperd/configs"
)

const explainHelp = `Explain says which class of a policy takes a flow: by which rule, why the rules
before it did not, and what the class gets on each link.

The flow is given by flags, one of them or more: for a relay, from the client to
the address that it connects to. An end is an address with or without a port, or a
port alone; names are not looked up. What is not given is not known, and a rule
that asks for it does not match. With schedules the rates are those of now, and
what changes next for the class follows them.

With --pcap the flows of a capture file are listed instead, each with its class.`

const explainExamples = `  shaperd explain shaperd.yaml --dst 192.0.2.7:443
  shaperd explain shaperd.yaml --src '[2001:db8::1]:40000' --dst '[2001:db8::2]:22'
  shaperd explain shaperd.yaml --proto udp --dst :5060 --dscp ef
  shaperd explain shaperd.yaml --pcap capture.pcap`

func newExplainCmd() *cobra.Command {
	var (
		flow    flowFlags
		capture string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:     "explain FILE",
		Short:   "Say which class takes a flow, and why",
		Long:    explainHelp,
		Example: explainExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := flow.parse()
			given := slices.ContainsFunc(flowFlagNames, cmd.Flags().Changed)
			switch {
			case err != nil:
			case capture == "" && !given:
				err = errors.New("no flow is given: write what is known of it with --src, --dst, --proto, --dscp or --fwmark, or give a capture with --pcap")
			case capture != "" && given:
				err = errors.New("--pcap brings its own flows: leave the other flags out")
			}
			if err != nil {
				return usageError{err}
			}
			p, err := configs.Load(args[0])
			if err != nil {
				return err
			}
			if capture != "" {
				return explainCapture(cmd.OutOrStdout(), p, capture, asJSON)
			}
			e, err := explain(p, f, time.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), e)
			}
			e.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().StringVar(&flow.src, "src", "", "source `ADDRESS`")
	cmd.Flags().StringVar(&flow.dst, "dst", "", "destination `ADDRESS`")
	cmd.Flags().StringVar(&flow.proto, "proto", "tcp", "`PROTOCOL`: tcp, udp, icmp, icmpv6 or a number (default tcp)")
	cmd.Flags().StringVar(&flow.dscp, "dscp", "cs0", "`DSCP`: a name such as ef, or 0 to 63 (default cs0)")
	cmd.Flags().StringVar(&flow.fwmark, "fwmark", "0", "netfilter `MARK` (default 0)")
	cmd.Flags().StringVar(&capture, "pcap", "", "list the flows of a capture `FILE`, pcap or pcapng")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// flowFlags are a flow as the flags give it.
type flowFlags struct{ src, dst, proto, dscp, fwmark string }

var flowFlagNames = []string{"src", "dst", "proto", "dscp", "fwmark"}

func (f *flowFlags) parse() (flow classify.Flow, err error) {
	if flow.Src, err = parseEnd(f.src); err != nil {
		return flow, fmt.Errorf("--src %w", err)
	}
	if flow.Dst, err = parseEnd(f.dst); err != nil {
		return flow, fmt.Errorf("--dst %w", err)
	}
	if flow.Proto, err = classify.ParseProtocol(f.proto); err != nil {
		return flow, fmt.Errorf("--proto: %w", err)
	}
	if flow.DSCP, err = classify.ParseDSCP(f.dscp); err != nil {
		return flow, fmt.Errorf("--dscp: %w", err)
	}
	mark, err := strconv.ParseUint(f.fwmark, 0, 32)
	if err != nil {
		return flow, fmt.Errorf("--fwmark %q: write a number from 0 to 0xffffffff", f.fwmark)
	}
	flow.Fwmark = uint32(mark)
	return flow, nil
}

// parseEnd reads an address with or without a port, or a port alone.
func parseEnd(s string) (netip.AddrPort, error) {
	if s == "" {
		return netip.AddrPort{}, nil
	}
	if port, ok := strings.CutPrefix(s, ":"); ok && !strings.Contains(port, ":") {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("%q: a port is a number up to 65535", s)
		}
		return netip.AddrPortFrom(netip.Addr{}, uint16(n)), nil
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a, 0), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err == nil {
		return a, nil
	}
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i:]
	}
	_, noAddress := netip.ParseAddr(strings.Trim(host, "[]"))
	switch {
	case noAddress == nil:
		return a, fmt.Errorf("%q: a port is a number up to 65535", s)
	case !strings.Contains(host, ":") && strings.ContainsFunc(host, unicode.IsLetter):
		return a, fmt.Errorf("%q: names are not looked up: write an address, such as 192.0.2.1%s", s, port)
	}
	return a, fmt.Errorf("%q: write 192.0.2.1, 192.0.2.1:443, [2001:db8::1]:443 or :443", s)
}
