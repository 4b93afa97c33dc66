package main

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

const longestScan = 100

func valueNumber(bytes []byte) uint64 {
	if len(bytes) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(bytes)
}

// client does the operations of one thread of a workload, as ycsb.h says.
type client struct {
	*reader
	write   *pebble.WriteOptions
	zipfian *zipfian // nil: keys are drawn evenly
	thread  uint64
	value   *value
	inserts uint64
}

func (c *client) inserted(i uint64) uint64 {
	return c.t.firstInsert + i*uint64(c.t.threads) + c.thread
}

func (c *client) draw() uint64 {
	const spread = 2654435761
	if c.zipfian == nil {
		return c.r.below(c.t.entries)
	}
	return c.zipfian.draw(c.r) * spread % c.t.entries
}

func (c *client) drawLate() uint64 {
	var age uint64
	if c.zipfian == nil {
		age = c.r.below(c.t.entries + c.inserts)
	} else {
		age = c.zipfian.draw(c.r)
	}
	if age < c.inserts {
		return c.inserted(c.inserts - 1 - age)
	}
	return c.t.entries - 1 - (age - c.inserts)
}

func (c *client) put(number uint64) error {
	return c.db.Set(c.key.present(number), c.value.of(number), c.write)
}

func (c *client) operate() error {
	percent := map[string]uint64{"a": 50, "f": 50, "c": 100}[c.t.workload]
	if percent == 0 {
		percent = 95
	}
	if c.r.below(100) < percent {
		switch c.t.workload {
		case "e":
			return c.seek(c.draw(), c.r.below(longestScan))
		case "d":
			return c.getEntry(c.drawLate())
		}
		return c.getEntry(c.draw())
	}
	switch c.t.workload {
	case "d", "e":
		c.inserts++
		return c.put(c.inserted(c.inserts - 1))
	case "f":
		number := c.draw()
		if err := c.getEntry(number); err != nil {
			return err
		}
		return c.put(number)
	}
	return c.put(c.draw())
}

func runYcsb(db *pebble.DB, write *pebble.WriteOptions, t task) (timing, error) {
	var drawn *zipfian
	if t.zipfian {
		drawn = newZipfian(t.entries)
	}
	return timeThreads(t, t.threads, t.operations, func(thread int, begin, end uint64, l *latencies) error {
		c := &client{newReader(db, t, thread), write, drawn, uint64(thread), newValue(t.valueSize), 0}
		for i := begin; i < end; i++ {
			if err := l.time(c.operate); err != nil {
				return err
			}
		}
		return nil
	})
}
