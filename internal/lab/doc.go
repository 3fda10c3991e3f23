// Package lab builds hosts and routers in network namespaces, with traffic
// between them, for the kernel datapath's demo, benchmarks and tests:
//
//	l, err := lab.New("client", "router", "server")
//	if err != nil { … } // needs root
//	defer l.Close()
//	err = l.Join(lab.End{"client", "eth0", []string{"10.1.0.2/24"}}, lab.End{"router", "lan0", []string{"10.1.0.1/24"}})
//	err = l.Do("router", func() error { … })             // in its namespace
//	wait, err := l.Start("router", exec.Command("shaperd", "run"))
//	s, err := l.Connect(lab.TCP{Client: "client", Server: "server", Addrs: …, DSCP: 46})
//	s.Send()                                             // all it can, until s.Close
//	rate, each := s.Rate(from, 5*time.Second)            // on the wire
//
// Each host is a namespace without a name, held by one thread of this process:
// nothing is left when the process ends, however it ends. Every host forwards.
// Sockets that Do opens may be used anywhere afterwards.
//
// Traffic: TCP connections that carry all they can (tcp.go), numbered UDP
// packets at a steady rate (udp.go), and what arrives at a device, packet by
// packet (capture.go). Rates count what a qdisc counts: packets with the headers
// of Ethernet, IP and TCP or UDP.
//
// Whoever gets something with a Close calls it; a Lab's own ends the processes
// and hosts. The package knows nothing of shaping, and is not for the product.
package lab
