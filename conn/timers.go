package conn

import "time"

// timers is a binary heap of sessions by the time at which each wants to be
// looked at. A session whose deadline moves later stays where it is and is put
// back when its old time comes, so traffic never touches the heap.
type timers []timer

type timer struct {
	at time.Duration
	s  *session
}

// arm makes the loop look at s at the time given, or earlier.
func (h *timers) arm(s *session, at time.Duration) {
	if s.timer < 0 {
		*h = append(*h, timer{at, s})
		s.timer = int32(len(*h) - 1)
		h.up(int(s.timer))
		return
	}
	if i := int(s.timer); at < (*h)[i].at {
		(*h)[i].at = at
		h.up(i)
	}
}

// disarm takes s out.
func (h *timers) disarm(s *session) {
	i := int(s.timer)
	if i < 0 {
		return
	}
	s.timer = -1
	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = timer{}
	*h = (*h)[:last]
	if i == last {
		return
	}
	h.set(i, moved)
	h.down(i)
	h.up(int(moved.s.timer))
}

// expired takes out and returns a session whose time has come, or nil.
func (h *timers) expired(now time.Duration) *session {
	if len(*h) == 0 || (*h)[0].at > now {
		return nil
	}
	s := (*h)[0].s
	h.disarm(s)
	return s
}

// next returns the earliest time, or never.
func (h timers) next() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].at
}

func (h timers) set(i int, t timer) {
	h[i] = t
	t.s.timer = int32(i)
}

func (h timers) up(i int) {
	t := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].at <= t.at {
			break
		}
		h.set(i, h[parent])
		i = parent
	}
	h.set(i, t)
}

func (h timers) down(i int) {
	t := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if t.at <= h[child].at {
			break
		}
		h.set(i, h[child])
		i = child
	}
	h.set(i, t)
}
