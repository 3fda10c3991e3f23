package main

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"shaperd/classify"
	"shaperd/configs"
	"shaperd/shaper"
)

const explainHelp = `Explain says which class of a policy takes a flow: by which rule, why the rules
before it did not, and what the class gets on each link.

The flow is given by flags. What is not given is not known, and matches no rule
that asks for it. With --pcap the flows of a capture file are listed instead,
each with its class.`

const explainExamples = `  shaperd explain shaperd.yaml --dst 192.0.2.7:443
  shaperd explain shaperd.yaml --src '[2001:db8::1]:40000' --dst '[2001:db8::2]:22'
  shaperd explain shaperd.yaml --proto udp --dscp ef
  shaperd explain shaperd.yaml --pcap capture.pcap`
