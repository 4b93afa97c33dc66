// check HISTORY...: whether each history is linearizable, judged by Porcupine. A history is what history_main writes: one operation a line,
//
//	client call return get KEY RESULT             RESULT, EXPECTED: a value, or - for none
//	client call return set KEY VALUE              times in nanoseconds
//	client call return del KEY FOUND              FOUND, DONE: 1 or 0
//	client call return cas KEY EXPECTED VALUE DONE
//
// with ? in the place of the result of an operation whose reply was lost as the server was killed (its last field; "set" has then
// one more). Such an operation took effect at some time up to the death of the process, which is its return, or never; that is stricter
// than leaving it open for ever, as what comes back later is found too. Every value is written at most once.
//
// With -spoil N, a read of the N-th seed is changed to what was there long before; then the history must be refused.
// Exit code: 0 when all are linearizable, 1 when one is not, 2 for anything else.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const none = "-"

type request struct {
	kind, key, expected, value string
}

type reply struct {
	unknown bool
	result  string
}

// What a key can be after the operation, when it was `state` before; nothing: the reply can't be.
func step(state interface{}, input interface{}, output interface{}) []interface{} {
	in, out := input.(request), output.(reply)
	after, result := state.(string), ""
	switch in.kind {
	case "get":
		result = after
	case "set":
		after, result = in.value, "ok"
	case "del":
		result = "1"
		if after == none {
			result = "0"
		}
		after = none
	case "cas":
		result = "0"
		if after == in.expected {
			after, result = in.value, "1"
		}
	}
	if out.unknown {
		return []interface{}{state, after}
	}
	if out.result != result {
		return nil
	}
	return []interface{}{after}
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, operation := range history {
		key := operation.Input.(request).key
		keys[key] = append(keys[key], operation)
	}
	var parts [][]porcupine.Operation
	for _, part := range keys {
		parts = append(parts, part)
	}
	return parts
}

func fail(format string, arguments ...interface{}) {
	fmt.Printf(format+"\n", arguments...)
	os.Exit(2)
}

func parse(line string) (operation porcupine.Operation) {
	var in request
	var rest string
	if n, _ := fmt.Sscan(line, &operation.ClientId, &operation.Call, &operation.Return, &in.kind, &in.key); n != 5 {
		fail("no operation: %s", line)
	}
	fields := strings.Fields(line)[5:]
	result := func(at int) reply {
		if len(fields) != at+1 {
			fail("no operation: %s", line)
		}
		rest = fields[at]
		return reply{unknown: rest == "?", result: rest}
	}
	switch in.kind {
	case "get", "del":
		operation.Output = result(0)
	case "set":
		if len(fields) == 1 {
			fields = append(fields, "ok")
		}
		in.value = fields[0]
		operation.Output = result(1)
	case "cas":
		operation.Output = result(2)
		in.expected, in.value = fields[0], fields[1]
	default:
		fail("no operation: %s", line)
	}
	operation.Input = in
	return operation
}

func read(path string) (history []porcupine.Operation) {
	file, err := os.Open(path)
	if err != nil {
		fail("%v", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			history = append(history, parse(line))
		}
	}
	return history
}

// Makes one read return what another one saw at least 200 operations on the same key before.
func spoil(history []porcupine.Operation, seed int64) {
	const apart = 200
	random := rand.New(rand.NewSource(seed))
	seen := map[string][]int{}
	var chosen, source int
	choices := 0
	for i, operation := range history {
		in, out := operation.Input.(request), operation.Output.(reply)
		before := seen[in.key]
		seen[in.key] = append(before, i)
		if in.kind != "get" || out.unknown || len(before) < apart {
			continue
		}
		for _, j := range before[:len(before)-apart+1] {
			old, then := history[j].Output.(reply), history[j].Input.(request)
			if then.kind != "get" || old.unknown || old.result == none || old.result == out.result {
				continue
			}
			choices++
			if random.Intn(choices) == 0 {
				chosen, source = i, j
			}
			break
		}
	}
	if choices == 0 {
		fail("no read can be spoiled")
	}
	history[chosen].Output = history[source].Output
}

func main() {
	seed := flag.Int64("spoil", 0, "seed of the read that is changed; 0: none is")
	flag.Parse()
	model := porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []interface{} { return []interface{}{none} },
		Step:      step,
		Equal:     func(a, b interface{}) bool { return a == b },
	}
	code := 0
	for _, path := range flag.Args() {
		history := read(path)
		if *seed != 0 {
			spoil(history, *seed)
		}
		unknown := 0
		for _, operation := range history {
			if operation.Output.(reply).unknown {
				unknown++
			}
		}
		begin := time.Now()
		result := porcupine.CheckOperationsTimeout(model.ToModel(), history, 100*time.Second)
		fmt.Printf("%s: %d operations, %d of unknown outcome: %s, found in %d ms\n", path, len(history), unknown, result,
			time.Since(begin).Milliseconds())
		if result == porcupine.Unknown {
			code = 2
		} else if result == porcupine.Illegal && code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}
