// The memory guard turns std::bad_alloc into a Status: functions of the engine answer
// ResourceExhausted when there is no memory left, and do not throw.
//
// A guard stands around each public function of the engine and each round of a thread's work. Code
// inside a guard leaves nothing half done when an exception passes: steps that need memory come
// first, and steps that must not fail any more need none. The engine uses the hash tables of the
// standard library, since those of abseil are not written that way (one whose growth failed frees
// memory that it never had).
//
// Thread-safety: Nothing here keeps state, so all threads may use it.
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

// Returns a status with the message that `words()` returns (something absl takes as text), or
// without a message if there is no memory for one.
template <typename Words>
absl::Status StatusInWords(absl::StatusCode code, Words words) noexcept {
  try {
    return absl::Status(code, words());
  } catch (const std::bad_alloc&) {
    return absl::Status(code, absl::string_view());  // takes no memory
  }
}

// Returns ResourceExhausted with the message "out of memory while <doing>; ...". Never throws.
[[nodiscard]] absl::Status OutOfMemory(std::string_view doing) noexcept;
// Does the same when the system does not give a thread, which the standard library reports as an
// exception, too.
[[nodiscard]] absl::Status OutOfThreads(std::string_view doing,
                                        const std::system_error& failed) noexcept;

// Returns the message of a status, or why there is none.
inline std::string_view WordsOf(const absl::Status& status) {
  if (status.message().empty()) return "out of memory, also for words";
  return {status.message().data(), status.message().size()};
}

// Returns what `work` returns (an absl::Status or StatusOr), or ResourceExhausted if memory or
// threads ran out meanwhile. `doing` completes "out of memory while ...".
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

// Does optional work. Returns false if the work was not done, as there was no memory for it.
template <typename Work>
bool TryWithMemory(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Makes room for `count` more elements, so that adding them cannot fail. The vector grows as if
// they were added one by one.
template <typename T>
void ReserveMore(std::vector<T>* elements, size_t count) {
  const size_t needed = elements->size() + count;
  if (needed > elements->capacity())
    elements->reserve(needed < 2 * elements->capacity() ? 2 * elements->capacity() : needed);
}

}  // namespace varve
