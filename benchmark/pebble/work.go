package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A task is the work of a row of engine_rows.h.
type task struct {
	kind        string
	valueSize   uint64
	threads     int
	entries     uint64
	operations  uint64
	group       uint64
	every       uint64 // one operation in so many is timed; 0: none
	seed        uint64
	seekSteps   uint64
	workload    string // of YCSB
	zipfian     bool
	firstInsert uint64
}

func taskFor(w words) task {
	return task{
		kind: w["kind"], valueSize: w.number("value_size"), threads: int(w.number("threads")),
		entries: w.number("entries"), operations: w.number("operations"), group: w.number("group"),
		every: w.number("every"), seed: w.number("seed"), seekSteps: w.number("seek_steps"),
		workload: w["workload"], zipfian: w.number("zipfian") != 0,
		firstInsert: w.number("first_insert"),
	}
}

type timing struct {
	seconds   float64
	writes    uint64
	latencies histogram
}

// latencies times operations as latencies.h does.
type latencies struct {
	every, left uint64
	last        time.Time
	found       histogram
}

func (l *latencies) time(operation func() error) error {
	if l.every != 1 {
		l.left--
		if l.every == 0 || l.left > 0 {
			return operation()
		}
		l.left = l.every
		l.last = time.Now()
	}
	if err := operation(); err != nil {
		return err
	}
	now := time.Now()
	l.found[bucketOf(uint64(now.Sub(l.last)))]++
	l.last = now
	return nil
}

// part does the operations [begin, end) of one thread.
type part func(thread int, begin, end uint64, l *latencies) error

func timeThreads(t task, threads int, operations uint64, do part) (timing, error) {
	count := uint64(threads)
	ready := make(chan struct{})
	all := make([]*latencies, threads)
	failures := make([]error, threads)
	var running sync.WaitGroup
	for i := range all {
		all[i] = &latencies{every: t.every, left: t.every, found: newHistogram()}
		running.Add(1)
		go func() {
			defer running.Done()
			<-ready
			at := uint64(i)
			all[i].last = time.Now()
			failures[i] = do(i, operations*at/count, operations*(at+1)/count, all[i])
		}()
	}
	begin := time.Now()
	close(ready)
	running.Wait()
	result := timing{seconds: time.Since(begin).Seconds(), latencies: newHistogram()}
	for _, one := range all {
		for bucket, times := range one.found {
			result.latencies[bucket] += times
		}
	}
	return result, errors.Join(failures...)
}

func fill(db *pebble.DB, write *pebble.WriteOptions, t task, threads int) (timing, error) {
	var order []uint32
	if t.kind != "fill_in_order" {
		order = shuffled(t.entries, 0)
	}
	return timeThreads(t, threads, t.entries, func(_ int, begin, end uint64, l *latencies) error {
		k, v := newKey(), newValue(t.valueSize)
		for i := begin; i < end; i++ {
			number := i
			if order != nil {
				number = uint64(order[i])
			}
			err := l.time(func() error { return db.Set(k.present(number), v.of(number), write) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func fillInBatches(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	order := shuffled(t.entries, 0)
	return timeThreads(t, 1, t.entries, func(_ int, begin, end uint64, l *latencies) error {
		k, v := newKey(), newValue(t.valueSize)
		for i := begin; i < end; i += t.group {
			err := l.time(func() error {
				batch := db.NewBatch()
				defer batch.Close()
				for at := i; at < min(i+t.group, end); at++ {
					number := uint64(order[at])
					if err := batch.Set(k.present(number), v.of(number), nil); err != nil {
						return err
					}
				}
				return batch.Commit(write)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func overwrite(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	return timeThreads(t, 1, t.operations, func(_ int, begin, end uint64, l *latencies) error {
		r, k, v := newRandom(t.entries), newKey(), newValue(t.valueSize)
		for i := begin; i < end; i++ {
			number := r.below(t.entries)
			err := l.time(func() error { return db.Set(k.present(number), v.of(number), write) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func deleteAll(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	order := shuffled(t.entries, 1)
	result, err := timeThreads(t, 1, t.entries, func(_ int, begin, end uint64, l *latencies) error {
		k := newKey()
		for i := begin; i < end; i++ {
			err := l.time(func() error { return db.Delete(k.present(uint64(order[i])), write) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return result, err
	}
	iter, err := db.NewIter(nil)
	if err != nil {
		return result, err
	}
	if iter.First() {
		err = errors.New("something is left after all was deleted")
	}
	return result, errors.Join(err, iter.Close())
}

// reader does the reads of one thread.
type reader struct {
	db    *pebble.DB
	t     task
	r     *random
	key   *key
	value []byte
	sum   uint64 // of what was touched, so that the compiler leaves it in
}

func newReader(db *pebble.DB, t task, thread int) *reader {
	return &reader{db: db, t: t, r: newRandom(t.seed + uint64(thread)), key: newKey()}
}

// get copies the value out.
func (r *reader) get(key []byte) (bool, error) {
	value, closer, err := r.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.value = append(r.value[:0], value...)
	return true, closer.Close()
}

func (r *reader) getEntry(number uint64) error {
	found, err := r.get(r.key.present(number))
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("entry %d was not found", number)
	}
	return checkValue(r.value, number, r.t.valueSize)
}

func (r *reader) missing(number uint64) error {
	found, err := r.get(r.key.missing(number))
	if err == nil && found {
		return errors.New("a missing key was found")
	}
	return err
}

// seek takes a new view, seeks to the entry and steps so often.
func (r *reader) seek(number, steps uint64) error {
	iter, err := r.db.NewIter(nil)
	if err != nil {
		return err
	}
	key := r.key.present(number)
	if !iter.SeekGE(key) || string(iter.Key()) != string(key) {
		return errors.Join(fmt.Errorf("a seek did not find entry %d", number), iter.Close())
	}
	err = checkValue(iter.Value(), number, r.t.valueSize)
	r.sum += touch(iter.Value())
	last := number
	for step := uint64(0); err == nil && step < steps && iter.Next(); step++ {
		next := valueNumber(iter.Value())
		r.sum += touch(iter.Value())
		if next <= last {
			err = fmt.Errorf("entry %d follows entry %d", next, last)
		}
		last = next
	}
	return errors.Join(err, iter.Close())
}

// readAll reads the entries in order and returns how many there were.
func (r *reader) readAll() (uint64, error) {
	iter, err := r.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	count := uint64(0)
	for more := iter.First(); more && err == nil; more = iter.Next() {
		err = checkValue(iter.Value(), count, r.t.valueSize)
		r.sum += touch(iter.Value())
		count++
	}
	if err == nil && count != r.t.entries {
		err = fmt.Errorf("%d of %d entries were read in order", count, r.t.entries)
	}
	return count, errors.Join(err, iter.Close())
}

func read(db *pebble.DB, t task) (timing, error) {
	return timeThreads(t, t.threads, t.operations, func(thread int, begin, end uint64, l *latencies) error {
		r := newReader(db, t, thread)
		if t.kind == "read_in_order" {
			for done := begin; done < end; {
				count, err := r.readAll()
				if err != nil {
					return err
				}
				done += count
			}
			return nil
		}
		step := uint64(1)
		if t.kind == "multiget" {
			step = t.group
		}
		for i := begin; i < end; i += step {
			err := l.time(func() error { return r.operate(min(step, end-i)) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// operate does one operation of read, which is a call of so many keys. Pebble has no MultiGet.
func (r *reader) operate(keys uint64) error {
	for ; keys > 0; keys-- {
		number := r.r.below(r.t.entries)
		var err error
		switch r.t.kind {
		case "seek":
			err = r.seek(number, r.t.seekSteps)
		case "read_missing":
			err = r.missing(number)
		default:
			err = r.getEntry(number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readWhileWriting(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	var ended atomic.Bool
	writes := uint64(0)
	failure := make(chan error)
	go func() {
		r, k, v := newRandom(t.entries), newKey(), newValue(t.valueSize)
		var err error
		for ; err == nil && !ended.Load(); writes++ {
			number := r.below(t.entries)
			err = db.Set(k.present(number), v.of(number), write)
		}
		failure <- err
	}()
	t.kind = "read_at_random"
	result, err := read(db, t)
	ended.Store(true)
	err = errors.Join(err, <-failure)
	result.writes = writes
	return result, err
}

func doWork(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	switch t.kind {
	case "fill_in_order", "fill_at_random":
		return fill(db, write, t, 1)
	case "put":
		return fill(db, write, t, t.threads)
	case "fill_in_batches":
		return fillInBatches(db, write, t)
	case "overwrite":
		return overwrite(db, write, t)
	case "delete":
		return deleteAll(db, write, t)
	case "read_in_order", "read_at_random", "read_missing", "seek", "multiget":
		return read(db, t)
	case "read_while_writing":
		return readWhileWriting(db, write, t)
	case "ycsb":
		return runYcsb(db, write, t)
	}
	return timing{}, errors.New("an unknown work: " + t.kind)
}
