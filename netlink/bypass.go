package netlink

import (
	"fmt"
	"slices"

	"github.com/google/nftables"
)

// bypasses returns what sends packets past the qdiscs of devices that are to be
// shaped, in words: flowtables, which forward without them. It is empty where
// that cannot be known.
func (d *Datapath) bypasses(sites []*site) (notes []string) {
	if d.nftables == nil {
		return nil
	}
	tables, err := d.nftables.ListTables()
	if err != nil {
		return nil
	}
	for _, t := range tables {
		flowtables, err := d.nftables.ListFlowtables(t)
		if err != nil {
			continue
		}
		for _, f := range flowtables {
			for _, s := range sites {
				if s.config != nil && s.device != nil && slices.Contains(f.Devices, s.device.Name) {
					notes = append(notes, fmt.Sprintf("what the flowtable %s of table %s forwards through %s passes by its classes, unshaped: take %s out of it",
						f.Name, t.Name, s.device.Name, s.device.Name))
				}
			}
		}
	}
	return notes
}

// openNftables returns nil where there is no nftables, or it is not permitted.
func openNftables() *nftables.Conn {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil
	}
	return c
}
