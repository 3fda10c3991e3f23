package shaper

import "time"

const (
	// A chunk is what one turn may send: what the rate earns in chunkTime, within chunkMin and chunkMax.
	// Shorter turns cost a wake-up each; longer ones are felt by those who wait.
	chunkTime = 4 * time.Millisecond
	chunkMin  = 256
	chunkMax  = 512 << 10
	// chunkAlone is for the only queue that waits, where nothing on its way has a limit: nobody waits for
	// it to end, and at 10 Gbit/s and more the fewer turns save a tenth of the processor's time.
	chunkAlone = 1 << 20
	// creditTime is what a derived burst is worth. With less, a turn that comes late loses what it
	// was late for, and the rate falls short by 0.4 %.
	creditTime = 10 * time.Millisecond
)

// Chunk returns the most bytes that one turn may send at the rate; a rate of 0 is no limit.
func Chunk(r Rate) Size {
	if r <= 0 {
		return chunkMax
	}
	n, _ := earn(r, chunkTime, 0)
	return Size(min(max(n, chunkMin), chunkMax))
}

// DefaultBurst returns the burst of a class or link that has none configured:
// two chunks, or what the rate earns in 10 ms where that is more.
func DefaultBurst(r Rate) Size {
	n, _ := earn(r, creditTime, 0)
	return max(2*Chunk(r), Size(n))
}
