// What the benchmark has callers of redsync do, the same as those of Node in test/bench/processes/load.ts: each one acquires,
// works, releases, and begins again until the time is over.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
)

// How many keys a caller of free keys goes round, as there.
const keysPerCaller = 16

// More than anybody can use up: the default of 32 tries gives up while others are served.
const triesWithoutEnd = 1_000_000

type load struct {
	Callers int     `json:"callers"`
	ForMs   float64 `json:"forMs"`
	GraceMs float64 `json:"graceMs"`
	// Empty: every caller has keys of its own.
	Key    string  `json:"key"`
	Prefix string  `json:"prefix"`
	WorkMs float64 `json:"workMs"`
	// Of the clock on the wall, in ms; 0 for now.
	StartAt float64 `json:"startAt"`
	// Where exclusion across processes is checked, and the number of this one there; empty for none.
	Register string  `json:"register"`
	ID       float64 `json:"id"`
	// Whether to note when each section began and ended.
	NoteTimes bool `json:"noteTimes"`
}

type result struct {
	Served        []int   `json:"served"`
	Sections      int     `json:"sections"`
	ElapsedMs     float64 `json:"elapsedMs"`
	BusyMs        float64 `json:"busyMs"`
	LongestWaitMs float64 `json:"longestWaitMs"`
	CPUMs         float64 `json:"cpuMs"`
	Violations    int64   `json:"violations"`
	Failures      int64   `json:"failures"`
	FirstFailure  string  `json:"firstFailure,omitempty"`
	// In ms since the load began.
	Times      [][2]float64 `json:"times"`
	Unfinished int64        `json:"unfinished"`
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func cpuMs() float64 {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return ms(time.Duration(used.Utime.Nano() + used.Stime.Nano()))
}

// The file that test/bench/measure/register.ts describes: who is inside, how many sections there were, the last token.
type register struct{ file *os.File }

func (r register) read() (fields [3]float64) {
	bytes := make([]byte, 24)
	r.file.ReadAt(bytes, 0)
	for i := range fields {
		fields[i] = math.Float64frombits(binary.LittleEndian.Uint64(bytes[8*i:]))
	}
	return
}

func (r register) write(fields [3]float64) {
	bytes := make([]byte, 24)
	for i, field := range fields {
		binary.LittleEndian.PutUint64(bytes[8*i:], math.Float64bits(field))
	}
	r.file.WriteAt(bytes, 0)
}

// Runs the load to its end.
func runLoad(locks *redsync.Redsync, order load) result {
	done := result{Times: [][2]float64{}}
	var guard sync.Mutex
	var closed bool
	inside := map[string]int{}
	served := make([]int, order.Callers)
	requestedAt := make([]time.Time, order.Callers)
	var violations, failures, finished atomic.Int64
	var firstFailure string
	var shared *register
	if order.Register != "" {
		file, err := os.OpenFile(order.Register, os.O_RDWR, 0)
		if err != nil {
			return result{Failures: 1, FirstFailure: err.Error()}
		}
		defer file.Close()
		shared = &register{file}
	}

	if order.StartAt > 0 {
		time.Sleep(time.Until(time.UnixMicro(int64(order.StartAt * 1000))))
	}
	cpuBefore := cpuMs()
	start := time.Now()
	end := start.Add(time.Duration(order.ForMs * float64(time.Millisecond)))

	// Whether it was run: nothing is of one that comes after the end, when nobody counts any more.
	section := func(caller int, key string) {
		now := time.Now()
		guard.Lock()
		if closed {
			guard.Unlock()
			return
		}
		done.LongestWaitMs = max(done.LongestWaitMs, ms(now.Sub(requestedAt[caller])))
		requestedAt[caller] = time.Time{}
		done.Sections++
		if now.Before(end) {
			served[caller]++
		}
		if inside[key] > 0 {
			violations.Add(1)
		}
		inside[key]++
		var fields [3]float64
		if shared != nil {
			fields = shared.read()
			if fields[0] != 0 {
				violations.Add(1)
			}
			shared.write([3]float64{order.ID, fields[1], 0})
		}
		guard.Unlock()
		if order.WorkMs > 0 && now.Before(end) {
			time.Sleep(time.Duration(order.WorkMs * float64(time.Millisecond)))
		}
		guard.Lock()
		defer guard.Unlock()
		inside[key]--
		if order.NoteTimes {
			done.Times = append(done.Times, [2]float64{ms(now.Sub(start)), ms(time.Since(start))})
		}
		if left := min(ms(end.Sub(now)), ms(time.Since(now))); left > 0 {
			done.BusyMs += left
		}
		if shared != nil && !closed {
			left := shared.read()
			if left[0] != order.ID || left[1] != fields[1] {
				violations.Add(1)
			}
			shared.write([3]float64{0, fields[1] + 1, 0})
		}
	}

	failed := func(err error) {
		failures.Add(1)
		guard.Lock()
		if firstFailure == "" {
			firstFailure = err.Error()
		}
		guard.Unlock()
		time.Sleep(10 * time.Millisecond)
	}

	call := func(caller int) {
		for n := 0; time.Now().Before(end); n++ {
			key := order.Key
			if key == "" {
				key = fmt.Sprintf("free-%d-%d", caller, n%keysPerCaller)
			}
			guard.Lock()
			if requestedAt[caller].IsZero() {
				requestedAt[caller] = time.Now()
			}
			guard.Unlock()
			mutex := locks.NewMutex("lock:"+order.Prefix+key, redsync.WithTries(triesWithoutEnd))
			if err := mutex.Lock(); err != nil {
				failed(err)
				continue
			}
			section(caller, key)
			if released, err := mutex.Unlock(); !released && err != nil {
				failed(err)
			}
		}
		finished.Add(1)
	}

	var all sync.WaitGroup
	for caller := range order.Callers {
		all.Add(1)
		go func() {
			defer all.Done()
			call(caller)
		}()
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Duration((order.ForMs + order.GraceMs) * float64(time.Millisecond))):
	}

	guard.Lock()
	defer guard.Unlock()
	closed = true
	now := time.Now()
	for _, since := range requestedAt {
		// Whoever still waits has waited for at least this long.
		if !since.IsZero() {
			done.LongestWaitMs = max(done.LongestWaitMs, ms(now.Sub(since)))
		}
	}
	done.Served = append([]int{}, served...)
	done.ElapsedMs = ms(now.Sub(start))
	done.CPUMs = cpuMs() - cpuBefore
	done.Violations = violations.Load()
	done.Failures = failures.Load()
	done.FirstFailure = firstFailure
	done.Unfinished = int64(order.Callers) - finished.Load()
	return done
}
