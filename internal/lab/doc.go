// Package lab builds hosts and routers in network namespaces, for the kernel
// datapath's demo and benchmarks:
//
//	l, err := lab.New("client", "router", "server")
//	if err != nil { … } // needs root
//	defer l.Close()
//	err = l.Join(lab.End{"client", "eth0", []string{"10.1.0.2/24"}}, lab.End{"router", "lan0", []string{"10.1.0.1/24"}})
//	err = l.Do("router", func() error { … }) // in its namespace
//	cmd := exec.Command("shaperd", "run")
//	err = l.Start("router", cmd)
//
// Each host is a namespace without a name, held by one thread of this process:
// nothing is left when the process ends, however it ends. Sockets that Do opens
// may be used anywhere afterwards. Close ends the processes that Start started.
//
// It builds devices and no traffic, and it is not for the product.
package lab
