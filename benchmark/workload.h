// The workload is the keys and values of all rows of engine_benchmark. They are cheap to make, so
// that the rows measure little but the engine.
//
// Entry number i has a 25-byte key, in the order of i, and a value that begins with i, so that a
// read can check that it got the right entry. Between any two keys lies one that no row ever
// writes, for reads of missing keys.
//
// Thread-safety: each thread has its own objects.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace varve::bench {

inline constexpr size_t kKeySize = 25;

// A key whose digits Set() rewrites in place.
class Key {
 public:
  Key() { std::memcpy(bytes_, "benchmark0000000000000000", kKeySize); }

  std::string_view Present(uint64_t i) { return Set(2 * i); }
  std::string_view Missing(uint64_t i) { return Set(2 * i + 1); }

 private:
  std::string_view Set(uint64_t number) {
    for (size_t at = kKeySize; at-- > kKeySize - 16;) {
      bytes_[at] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
    return {bytes_, kKeySize};
  }

  char bytes_[kKeySize + 1];
};

// A value of a fixed size: the entry's number, then bytes that don't compress.
class Value {
 public:
  explicit Value(size_t size) : bytes_(size, '\0') {
    std::mt19937_64 random(size);
    for (char& byte : bytes_) byte = static_cast<char>(random());
  }

  std::string_view Of(uint64_t i) {
    std::memcpy(bytes_.data(), &i, sizeof(i));
    return bytes_;
  }

  static uint64_t Number(std::string_view value) {
    uint64_t i = 0;
    std::memcpy(&i, value.data(), std::min(sizeof(i), value.size()));
    return i;
  }

  // Reads a byte of each line of the value, and returns their sum. A program that uses the value
  // reads all of it, while an engine may only have handed out where the value lies.
  static uint64_t Touch(std::string_view value) {
    constexpr size_t kLine = 64;
    uint64_t sum = 0;
    for (size_t at = 0; at < value.size(); at += kLine) sum += static_cast<uint8_t>(value[at]);
    return sum;
  }

 private:
  std::string bytes_;
};

// A generator of random numbers below a bound, which takes a few nanoseconds each (xorshift64*,
// Vigna 2016; the high bits scaled to the bound).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  uint64_t Below(uint64_t bound) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return ((state_ * 0x2545F4914F6CDD1Du) >> 32) * bound >> 32;
  }

 private:
  uint64_t state_;
};

// Returns 0 .. count-1 in a shuffled order, which is the same in each run and differs by `variant`.
inline std::vector<uint32_t> Shuffled(size_t count, uint64_t variant = 0) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(count + variant));
  return order;
}

}  // namespace varve::bench
