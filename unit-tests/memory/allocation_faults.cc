#include "unit-tests/memory/allocation_faults.h"

#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace {

constexpr size_t kNameSize = 16;  // as the kernel keeps it, with the zero at its end

std::atomic<bool> armed{false};
std::atomic<uint64_t> calls{0};
std::atomic<uint64_t> failed{0};
uint64_t first_failure = 0;
uint64_t failures = 0;
char chosen_name[kNameSize] = {};  // empty: threads that are in a scope which counts
constinit thread_local bool counts_here = false;

bool ThisThreadIsChosen() {
  if (chosen_name[0] == '\0') return counts_here;
  char name[kNameSize] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::strncmp(name, chosen_name, kNameSize) == 0;
}

bool MustFail() {
  if (!armed.load(std::memory_order_acquire) || !ThisThreadIsChosen()) return false;
  const uint64_t call = calls.fetch_add(1) + 1;
  if (call < first_failure || call - first_failure >= failures) return false;
  failed.fetch_add(1);
  return true;
}

void Arm(std::string_view name, uint64_t nth, uint64_t times) {
  calls = 0;
  failed = 0;
  first_failure = nth;
  failures = times;
  std::fill_n(chosen_name, kNameSize, '\0');
  name.copy(chosen_name, kNameSize - 1);
  armed.store(true, std::memory_order_release);
}

}  // namespace

void* operator new(size_t size) {
  if (MustFail()) throw std::bad_alloc();
  void* memory = malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size, std::align_val_t alignment) {
  if (MustFail()) throw std::bad_alloc();
  const size_t unit = static_cast<size_t>(alignment);
  void* memory = aligned_alloc(unit, (std::max<size_t>(size, 1) + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return MustFail() ? nullptr : malloc(size);
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
void* operator new[](size_t size, const std::nothrow_t& nothrow) noexcept {
  return operator new(size, nothrow);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

// The linker's names for the functions and their stand-ins (--wrap).
extern "C" {
void* __real_calloc(size_t count, size_t size);
void* __wrap_calloc(size_t count, size_t size) {
  return MustFail() ? nullptr : __real_calloc(count, size);
}
}

namespace varve::testing {

AllocationFaults::AllocationFaults(uint64_t nth, uint64_t times) { Arm({}, nth, times); }
AllocationFaults::AllocationFaults(std::string_view thread_name, uint64_t nth, uint64_t times) {
  Arm(thread_name, nth, times);
}
AllocationFaults::~AllocationFaults() { armed.store(false); }
AllocationFaults::Scope::Scope(bool counts) : before_(std::exchange(counts_here, counts)) {}
AllocationFaults::Scope::~Scope() { counts_here = before_; }
bool AllocationFaults::reached() const { return failed.load() != 0; }
uint64_t AllocationFaults::allocations() const { return calls.load(); }

}  // namespace varve::testing
