package measure

import (
	"math"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	if got := Jain([]float64{5, 5, 5, 5}); got != 1 {
		t.Errorf("Jain of equals: %v", got)
	}
	if got := Jain([]float64{1, 0, 0, 0}); got != 0.25 {
		t.Errorf("Jain of one that has all: %v", got)
	}
}

func TestRateAndBurstOfASteadyFlowAfterABurst(t *testing.T) {
	var list []Arrival
	list = append(list, Arrival{N: 5000})
	for i := 1; i <= 1000; i++ { // 1000 bytes each ms
		list = append(list, Arrival{At: time.Duration(i) * time.Millisecond, N: 1000, Conn: i % 2})
	}
	rate, each := Rate(list, time.Second, 2)
	if math.Abs(rate-1e6) > 1 || each[0] != 500_000 || each[1] != 500_000 {
		t.Errorf("rate %v, each %v", rate, each)
	}
	if got := Burst(list, 0, 1e6); math.Abs(got-5000) > 1e-6 {
		t.Errorf("burst %v, want 5000", got)
	}
}

func TestMostInAWindowIsWhatSurelyArrivedInIt(t *testing.T) {
	ms := time.Millisecond
	var list []Arrival
	for i := range 100 { // 1000 bytes each ms of each of two connections
		at := time.Duration(i) * ms
		list = append(list, Arrival{At: at + ms, After: at, N: 1000}, Arrival{At: at + ms, After: at, N: 1000, Conn: 1})
	}
	if got := Most(list, 10*ms); got != 20_000 {
		t.Errorf("%d bytes in 10 ms of 2000 each, want 20000", got)
	}
	// A receiver that was held up for 50 ms has all of that at once.
	late := append(slices.Clone(list), Arrival{At: 150 * ms, After: 100 * ms, N: 50_000})
	if got := Most(late, 10*ms); got != 20_000 {
		t.Errorf("%d bytes in 10 ms, of which many may have arrived earlier", got)
	}
	burst := append(slices.Clone(list), Arrival{At: 105 * ms, After: 101 * ms, N: 50_000})
	if got := Most(burst, 10*ms); got != 50_000+5*2000 {
		t.Errorf("%d bytes in 10 ms with a burst", got)
	}
	if got := Most(nil, ms); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
}

// Bytes that a receiver finds were not there when it looked before.
func TestCountNotesWhenBytesWereNotThereYet(t *testing.T) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sender, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	r := NewRecorder()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Count(7, receiver)
	}()
	var sent []time.Duration
	for n := range int64(5) {
		sent = append(sent, r.Now())
		if _, err := sender.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		for r.Bytes(0) < 1000*(n+1) {
			runtime.Gosched()
		}
	}
	sender.Close()
	<-ended
	list := r.Since(0)
	if len(list) != len(sent) {
		t.Fatalf("%d arrivals of %d", len(list), len(sent))
	}
	for i, a := range list {
		if a.Conn != 7 || a.N != 1000 || a.At < sent[i] || a.After > a.At {
			t.Errorf("arrival %d: %+v, sent at %v", i, a, sent[i])
		}
		if i > 0 && (a.After < list[i-1].After || a.After == 0) {
			t.Errorf("arrival %d: %+v after %+v", i, a, list[i-1])
		}
	}
}
