// Tells ThreadSanitizer about absl::Mutex and absl::CondVar. Linked into programs that are built
// with -fsanitize=thread, and into no others.
//
// Debian's libabsl_synchronization is not built with ThreadSanitizer, which therefore does not see
// that one thread's Unlock happens before another's Lock and calls everything under a mutex a race.
// The definitions here stand before the library's: each says to ThreadSanitizer what it is about to
// do, and then does it by calling the library's own.
#include <absl/base/options.h>
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sanitizer/tsan_interface.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <string_view>

namespace {

#define VARVE_STRING_(text) #text
#define VARVE_STRING(text) VARVE_STRING_(text)

// The library's own function; `name` is its mangled name behind the namespace, as in
// "5Mutex4LockEv".
template <typename Function>
Function* Library(std::string_view name) {
  constexpr std::string_view kInlineNamespace = VARVE_STRING(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string symbol =
      fmt::format("_ZN4absl{}{}{}", kInlineNamespace.size(), kInlineNamespace, name);
  void* const address = dlsym(RTLD_NEXT, symbol.c_str());
  if (address == nullptr) {
    fprintf(stderr, "tsan_absl_mutex: no %s in libabsl_synchronization\n", symbol.c_str());
    abort();
  }
  return reinterpret_cast<Function*>(address);
}

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Time;

// Set while this thread is inside the library, whose functions call each other through the
// definitions below.
thread_local bool inside_library = false;

// Runs `call` in the library, between what is to be said to ThreadSanitizer before and after it.
template <typename Before, typename Call, typename After>
auto Announce(Before before, Call call, After after) {
  if (inside_library) return call();
  before();
  inside_library = true;
  const auto result = call();
  inside_library = false;
  after(result);
  return result;
}

// `call` takes the mutex and returns whether it could; `flags` as in tsan_interface.h.
template <typename Call>
bool Acquire(Mutex* mutex, unsigned flags, Call call) {
  return Announce([&] { __tsan_mutex_pre_lock(mutex, flags); }, call,
                  [&](bool taken) {
                    __tsan_mutex_post_lock(mutex,
                                           taken ? flags : flags | __tsan_mutex_try_lock_failed, 0);
                  });
}

// `call` gives the mutex up.
template <typename Call>
void Release(Mutex* mutex, unsigned flags, Call call) {
  Announce([&] { __tsan_mutex_pre_unlock(mutex, flags); }, call,
           [&](bool) { __tsan_mutex_post_unlock(mutex, flags); });
}

// `call` gives the mutex up, waits, and holds it again when it returns.
template <typename Call>
bool GiveUpAndWait(Mutex* mutex, Call call) {
  const auto before = [&] {
    __tsan_mutex_pre_unlock(mutex, 0);
    __tsan_mutex_post_unlock(mutex, 0);
    __tsan_mutex_pre_lock(mutex, 0);
  };
  return Announce(before, call, [&](bool) { __tsan_mutex_post_lock(mutex, 0, 0); });
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const lock = Library<void(Mutex*)>("5Mutex4LockEv");
  Acquire(this, 0, [this] { return lock(this), true; });
}

void Mutex::Unlock() {
  static auto* const unlock = Library<void(Mutex*)>("5Mutex6UnlockEv");
  Release(this, 0, [this] { return unlock(this), true; });
}

bool Mutex::TryLock() {
  static auto* const try_lock = Library<bool(Mutex*)>("5Mutex7TryLockEv");
  return Acquire(this, __tsan_mutex_try_lock, [this] { return try_lock(this); });
}

void Mutex::ReaderLock() {
  static auto* const lock = Library<void(Mutex*)>("5Mutex10ReaderLockEv");
  Acquire(this, __tsan_mutex_read_lock, [this] { return lock(this), true; });
}

void Mutex::ReaderUnlock() {
  static auto* const unlock = Library<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  Release(this, __tsan_mutex_read_lock, [this] { return unlock(this), true; });
}

bool Mutex::ReaderTryLock() {
  static auto* const try_lock = Library<bool(Mutex*)>("5Mutex13ReaderTryLockEv");
  return Acquire(this, __tsan_mutex_read_lock | __tsan_mutex_try_lock,
                 [this] { return try_lock(this); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const lock =
      Library<void(Mutex*, const Condition&)>("5Mutex8LockWhenERKNS0_9ConditionE");
  Acquire(this, 0, [&] { return lock(this, condition), true; });
}

void Mutex::Await(const Condition& condition) {
  static auto* const await =
      Library<void(Mutex*, const Condition&)>("5Mutex5AwaitERKNS0_9ConditionE");
  GiveUpAndWait(this, [&] { return await(this, condition), true; });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Duration)>(
      "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return GiveUpAndWait(this, [&] { return await(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const await = Library<bool(Mutex*, const Condition&, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return GiveUpAndWait(this, [&] { return await(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const wait = Library<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  GiveUpAndWait(mutex, [&] { return wait(this, mutex), true; });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const wait = Library<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return GiveUpAndWait(mutex, [&] { return wait(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const wait =
      Library<bool(CondVar*, Mutex*, Time)>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return GiveUpAndWait(mutex, [&] { return wait(this, mutex, deadline); });
}

ABSL_NAMESPACE_END
}  // namespace absl
