// Makes allocations fail: the n-th of chosen threads, and those that follow. Only for the program
// that is linked with allocation_faults.cc, which replaces operator new, and wraps calloc of what
// is linked statically.
//
// One at a time; from any thread. While none exists, allocating costs one load more than without
// it.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace varve::testing {

class AllocationFaults {
 public:
  static constexpr uint64_t kForGood = std::numeric_limits<uint64_t>::max();

  // None fails: for counting those of all threads with this name.
  explicit AllocationFaults(std::string_view thread_name)
      : AllocationFaults(thread_name, kForGood, 0) {}
  // Of the calling thread, inside of Scope(true): the allocation number `nth`, counted from 1, and
  // those behind it up to `times` in all.
  AllocationFaults(uint64_t nth, uint64_t times);
  // Of all threads with this name.
  AllocationFaults(std::string_view thread_name, uint64_t nth, uint64_t times);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;

  // Whether what the thread allocates counts: the calls that are tested do, the test around them
  // doesn't.
  class Scope {
   public:
    explicit Scope(bool counts);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const bool before_;
  };

  // Returns whether an allocation has failed.
  bool reached() const;
  // Returns how many allocations the chosen threads have made so far.
  uint64_t allocations() const;
};

}  // namespace varve::testing
