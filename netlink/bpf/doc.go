// Package bpf is the classifier of the kernel datapath as one eBPF program: it
// sends each packet to the HTB class that the rules give its flow, at a cost
// that does not grow with their number.
//
//	tables, err := bpf.Compile(rules, minors, control)  // pure
//	program, err := bpf.Load(tables)                    // in the kernel
//	…                                                   // attach program.FD() as a direct-action filter
//	err = program.Update(tables)                        // other rules: each packet sees the old or the new
//	program.Close()                                     // the filters keep it
//
// The program is classifier.c, compiled beforehand: whoever builds or runs
// shaperd needs no compiler. "make bpf" compiles it anew.
//
// It needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON, and Linux 5.13 (tested on 6.1
// and 6.18). Its answers are those of package classify, but for control traffic (ARP, neighbour
// discovery, DHCP, ICMPv6 without pings, PPP's own), which comes before all
// rules. Fragments but the first have no ports: they match rules without any,
// else they go to the default class, as does what cannot be read.
//
// The package attaches nothing and knows no rates.
package bpf
