package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand"
)

// The keys and values are those of workload.h: entry number i has a key of 25 bytes, in the order
// of i, and a value that begins with i.

type key struct{ bytes []byte }

func newKey() *key { return &key{[]byte("benchmark0000000000000000")} }

func (k *key) present(i uint64) []byte { return k.set(2 * i) }
func (k *key) missing(i uint64) []byte { return k.set(2*i + 1) }

func (k *key) set(number uint64) []byte {
	for at := len(k.bytes) - 1; at >= len("benchmark"); at-- {
		k.bytes[at] = byte('0' + number%10)
		number /= 10
	}
	return k.bytes
}

type value struct{ bytes []byte }

func newValue(size uint64) *value {
	v := &value{make([]byte, size)}
	rand.New(rand.NewSource(int64(size))).Read(v.bytes)
	return v
}

func (v *value) of(i uint64) []byte {
	binary.LittleEndian.PutUint64(v.bytes, i)
	return v.bytes
}

func checkValue(bytes []byte, number, size uint64) error {
	if uint64(len(bytes)) == size && binary.LittleEndian.Uint64(bytes) == number {
		return nil
	}
	return fmt.Errorf("entry %d was read as something else, %d bytes", number, len(bytes))
}

// touch reads a byte of each line of the value, as workload.h does.
func touch(bytes []byte) (sum uint64) {
	for at := 0; at < len(bytes); at += 64 {
		sum += uint64(bytes[at])
	}
	return sum
}

// random is workload.h's generator.
type random struct{ state uint64 }

func newRandom(seed uint64) *random { return &random{seed*0x9E3779B97F4A7C15 + 1} }

func (r *random) below(bound uint64) uint64 {
	r.state ^= r.state >> 12
	r.state ^= r.state << 25
	r.state ^= r.state >> 27
	return ((r.state * 0x2545F4914F6CDD1D) >> 32) * bound >> 32
}

func shuffled(count, variant uint64) []uint32 {
	order := make([]uint32, count)
	for i := range order {
		order[i] = uint32(i)
	}
	rand.New(rand.NewSource(int64(count+variant))).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	return order
}

// zipfian is zipfian.h's generator.
type zipfian struct{ bound, sum, eta, firstTwo float64 }

const theta = 0.99

func newZipfian(bound uint64) *zipfian {
	z := &zipfian{bound: float64(bound), firstTwo: 1 + math.Pow(0.5, theta)}
	for i := uint64(1); i <= bound; i++ {
		z.sum += math.Pow(float64(i), -theta)
	}
	z.eta = (1 - math.Pow(2/z.bound, 1-theta)) / (1 - z.firstTwo/z.sum)
	return z
}

func (z *zipfian) draw(r *random) uint64 {
	share := float64(r.below(math.MaxUint32)) / math.MaxUint32
	if share*z.sum < 1 {
		return 0
	}
	if share*z.sum < z.firstTwo {
		return min(1, uint64(z.bound)-1)
	}
	drawn := z.bound * math.Pow(z.eta*share-z.eta+1, 1/(1-theta))
	return min(uint64(drawn), uint64(z.bound)-1)
}

// A histogram has the buckets of histogram.h.
type histogram []uint64

const partBits = 6

func newHistogram() histogram { return make(histogram, (64-partBits+1)<<partBits) }

func bucketOf(nanoseconds uint64) int {
	if nanoseconds < 1<<partBits {
		return int(nanoseconds)
	}
	shift := bits.Len64(nanoseconds) - partBits - 1
	return (shift+1)<<partBits + int(nanoseconds>>shift) - 1<<partBits
}

func middle(bucket int) uint64 {
	if bucket < 1<<partBits {
		return uint64(bucket)
	}
	shift := bucket>>partBits - 1
	low := uint64(bucket&(1<<partBits-1)+1<<partBits) << shift
	return low + (uint64(1)<<shift)/2
}
