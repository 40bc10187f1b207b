// SPDX-License-Identifier: MIT

// Goroutines whose calls are known, with calls that grow their stacks, collect garbage and switch to the system's.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

//go:noinline
func leaf(until time.Time) (n int) {
	for time.Now().Before(until) {
		for i := 0; i < 500000; i++ {
			n ^= i * n
		}
	}
	return n
}

//go:noinline
func c(until time.Time) int { return leaf(until) + 1 }

//go:noinline
func b(n int, until time.Time) int {
	var room [64]int
	room[n] = n
	if n == 0 {
		return c(until)
	}
	return b(n-1, until) + room[n]
}

//go:noinline
func allocate(until time.Time) int {
	kept := make([][]byte, 64)
	for i := 0; i%5000 != 0 || time.Now().Before(until); i++ {
		kept[i%64] = make([]byte, 100+i%5000)
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	return len(kept)
}

func a(done *sync.WaitGroup, until time.Time) {
	defer done.Done()
	fmt.Sprint(b(20, until) + allocate(until.Add(200*time.Millisecond)))
}

func main() {
	var done sync.WaitGroup
	until := time.Now().Add(500 * time.Millisecond)
	for i := 0; i < 2; i++ {
		done.Add(1)
		go a(&done, until)
	}
	done.Wait()
}
