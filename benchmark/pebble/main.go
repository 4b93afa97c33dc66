// The program pebble_peer is Pebble's side of engine_benchmark. It opens a store and does the work
// of rows by itself, so that the figures are those of a Go program that uses Pebble, without a
// message for each call. The adapter pebble_peer.cc starts it and measures its process.
//
// It reads one request a line and answers each by lines, of which the last one is "end" or
// "error" and what happened. Bytes are "x" and hexadecimal digits.
//
//	open dir=... cache=N write_buffer=N write_buffers=N total=N synced=0 defaults=0
//	work kind=... value_size=N threads=N entries=N operations=N group=N every=N seed=N ...
//	                      "seconds F", "writes N", and "latency NANOSECONDS TIMES" for each bucket
//	put KEY VALUE         batch KEY VALUE KEY VALUE ...         delete KEY
//	get KEY               "value VALUE" if there is one
//	seek KEY              "entry KEY VALUE" if there is one
//	next                  the same
//	flush                 compact
//
// It ends when its input does. Settings: bloom filters of 10 bits a key, block cache and memtables as
// asked for, no compression, the newest format of its files, and Go's memory limit at nine tenths of
// the total, so that its collector runs before the kernel kills the process; all else as it comes.
// Pebble takes memtables out of its cache, which is therefore larger by these. Not synced is pebble.NoSync: a goroutine of
// Pebble's brings the log to the kernel, which may be after the write returned.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// words are the name=value parts of a request.
type words map[string]string

func parseWords(parts []string) words {
	w := words{}
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		w[name] = value
	}
	return w
}

func (w words) number(name string) uint64 {
	number, err := strconv.ParseUint(w[name], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

type silent struct{}

func (silent) Infof(string, ...interface{})  {}
func (silent) Errorf(string, ...interface{}) {}
func (silent) Fatalf(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, "Pebble: "+format+"\n", arguments...)
	os.Exit(1)
}

func optionsFor(w words) *pebble.Options {
	options := &pebble.Options{Logger: silent{}}
	if w.number("defaults") != 0 {
		return options
	}
	buffers := w.number("write_buffers")
	options.CacheSize = int64(w.number("cache") + buffers*w.number("write_buffer"))
	options.MemTableSize = w.number("write_buffer")
	options.MemTableStopWritesThreshold = int(buffers)
	options.FormatMajorVersion = pebble.FormatNewest
	options.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.DBCompressionNone
	})
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return options
}

// server has the open store, and the iterator of the requests seek and next.
type server struct {
	db    *pebble.DB
	write *pebble.WriteOptions
	iter  *pebble.Iterator
	out   *bufio.Writer
}

func (s *server) open(w words) error {
	s.write = pebble.NoSync
	if w.number("synced") != 0 {
		s.write = pebble.Sync
	}
	if total := w.number("total"); total != 0 {
		debug.SetMemoryLimit(int64(total / 10 * 9))
	}
	var err error
	s.db, err = pebble.Open(w["dir"], optionsFor(w))
	return err
}

func (s *server) get(key []byte) error {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "value x%x\n", value)
	return closer.Close()
}

func (s *server) entry(valid bool) error {
	if valid {
		fmt.Fprintf(s.out, "entry x%x x%x\n", s.iter.Key(), s.iter.Value())
	}
	return s.iter.Error()
}

func (s *server) seek(key []byte) error {
	if err := s.closeIterator(); err != nil {
		return err
	}
	var err error
	if s.iter, err = s.db.NewIter(nil); err != nil {
		return err
	}
	return s.entry(s.iter.SeekGE(key))
}

func (s *server) closeIterator() error {
	if s.iter == nil {
		return nil
	}
	iter := s.iter
	s.iter = nil
	return iter.Close()
}

func (s *server) compact() error {
	return s.db.Compact(context.Background(), []byte{0}, []byte{255, 255, 255, 255}, false)
}

func (s *server) batch(parts [][]byte) error {
	batch := s.db.NewBatch()
	defer batch.Close()
	for i := 0; i+1 < len(parts); i += 2 {
		if err := batch.Set(parts[i], parts[i+1], nil); err != nil {
			return err
		}
	}
	return batch.Commit(s.write)
}

func (s *server) work(w words) error {
	timing, err := doWork(s.db, s.write, taskFor(w))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "seconds %.9f\nwrites %d\n", timing.seconds, timing.writes)
	for bucket, times := range timing.latencies {
		if times > 0 {
			fmt.Fprintf(s.out, "latency %d %d\n", middle(bucket), times)
		}
	}
	return nil
}

func (s *server) do(request string) error {
	parts := strings.Fields(request)
	if len(parts) == 0 {
		return errors.New("an empty request")
	}
	switch parts[0] {
	case "open":
		return s.open(parseWords(parts[1:]))
	case "work":
		return s.work(parseWords(parts[1:]))
	case "next":
		return s.entry(s.iter.Next())
	case "flush":
		return s.db.Flush()
	case "compact":
		return s.compact()
	}
	var bytes [][]byte
	for _, part := range parts[1:] {
		decoded, err := hex.DecodeString(strings.TrimPrefix(part, "x"))
		if err != nil {
			return err
		}
		bytes = append(bytes, decoded)
	}
	switch {
	case parts[0] == "put" && len(bytes) == 2:
		return s.db.Set(bytes[0], bytes[1], s.write)
	case parts[0] == "batch":
		return s.batch(bytes)
	case parts[0] == "delete" && len(bytes) == 1:
		return s.db.Delete(bytes[0], s.write)
	case parts[0] == "get" && len(bytes) == 1:
		return s.get(bytes[0])
	case parts[0] == "seek" && len(bytes) == 1:
		return s.seek(bytes[0])
	}
	return errors.New("an unknown request: " + request)
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	s := &server{out: bufio.NewWriterSize(os.Stdout, 1<<16)}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		if err := s.do(line); err != nil {
			fmt.Fprintf(s.out, "error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Fprintln(s.out, "end")
		}
		if s.out.Flush() != nil {
			break
		}
	}
	if s.db == nil {
		return
	}
	if err := s.closeIterator(); err == nil {
		err = s.db.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, "Pebble:", err)
			os.Exit(1)
		}
	}
}
