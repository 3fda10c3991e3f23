package storetest

import (
	"runtime"
	"testing"
	"time"
)

// Eventually asks until the answer is yes, without a pause between. It fails the
// test when that takes too long.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}
