package shaper

import "time"

// events is a binary heap of what waits for a bucket to fill.
type events []*event

// An event is the moment at which something may take its turn again. It is
// embedded in what waits; the zero value is in no heap.
type event struct {
	at    time.Duration
	place int32 // in the heap, from 1; 0 when not waiting
	who   waiter
}

// A waiter is looked at again when its event is due.
type waiter interface {
	due(t *Tree, now time.Duration)
}

// set puts e at the given time, never takes it out.
func (h *events) set(e *event, at time.Duration) {
	switch {
	case at == never:
		h.remove(e)
	case e.place == 0:
		e.at = at
		*h = append(*h, e)
		e.place = int32(len(*h))
		h.up(len(*h) - 1)
	case at != e.at:
		later := at > e.at
		e.at = at
		if later {
			h.down(int(e.place) - 1)
		} else {
			h.up(int(e.place) - 1)
		}
	}
}

func (h *events) remove(e *event) {
	i := int(e.place) - 1
	if i < 0 {
		return
	}
	e.place = 0
	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.put(i, moved)
		h.down(i)
		h.up(int(moved.place) - 1)
	}
}

func (h events) next() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].at
}

func (h events) put(i int, e *event) {
	h[i] = e
	e.place = int32(i + 1)
}

func (h events) up(i int) {
	e := h[i]
	for i > 0 && h[(i-1)/2].at > e.at {
		h.put(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	h.put(i, e)
}

func (h events) down(i int) {
	e := h[i]
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if child >= len(h) || h[child].at >= e.at {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, e)
}
