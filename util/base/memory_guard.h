// Where there is no memory left, functions answer with a Status instead of an exception: the border
// at which std::bad_alloc becomes one.
//
// Inside the border code is written so that an exception leaves nothing half done: what needs
// memory comes first, and what must not fail any more afterwards needs none. The border is around
// each public function of the engine and each round of a thread's work. abseil's hash tables are
// not written that way (one whose growth failed frees what it never had): the engine uses the
// standard library's. Stateless, thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace varve {

// A status with the message that `words()` returns (something absl takes as text); without one
// where there is no memory for it.
template <typename Words>
absl::Status StatusInWords(absl::StatusCode code, Words words) noexcept {
  try {
    return absl::Status(code, words());
  } catch (const std::bad_alloc&) {
    return absl::Status(code, absl::string_view());  // takes no memory
  }
}

// ResourceExhausted: "out of memory while <doing>; ...". Never throws.
[[nodiscard]] absl::Status OutOfMemory(std::string_view doing) noexcept;
// The same for the threads that the system doesn't give, which the standard library reports as an
// exception, too.
[[nodiscard]] absl::Status OutOfThreads(std::string_view doing,
                                        const std::system_error& failed) noexcept;

// The message, or why there is none.
inline std::string_view WordsOf(const absl::Status& status) {
  if (status.message().empty()) return "out of memory, also for words";
  return {status.message().data(), status.message().size()};
}

// What `work` returns (an absl::Status or StatusOr), or ResourceExhausted where memory or threads
// ran out meanwhile. `doing` completes "out of memory while ...".
template <typename Work>
auto GuardMemory(std::string_view doing, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(doing);
    // More than a container can hold, which is more than there is.
  } catch (const std::length_error&) {
    return OutOfMemory(doing);
  } catch (const std::system_error& failed) {
    return OutOfThreads(doing, failed);
  }
}

// Does what would be good to have done, and what nobody misses where there is no memory for it.
// False: it was not done.
template <typename Work>
bool TryWithMemory(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Makes room for `count` more elements: adding them can't fail. Grows as adding them one by one
// would.
template <typename T>
void ReserveMore(std::vector<T>* elements, size_t count) {
  const size_t needed = elements->size() + count;
  if (needed > elements->capacity())
    elements->reserve(needed < 2 * elements->capacity() ? 2 * elements->capacity() : needed);
}

}  // namespace varve
