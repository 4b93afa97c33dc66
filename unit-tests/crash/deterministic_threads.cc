#include "unit-tests/crash/deterministic_threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "util/os/thread_pace.h"

namespace varve::testing {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSecond = 1'000'000'000;
// What every simulation's clock shows at first, in ns.
constexpr uint64_t kStartOfTime = 1'700'000'000 * kSecond;
constexpr uint64_t kLookAtTheClock = 100;  // ns that pass meanwhile
constexpr uint64_t kYield = 1'000;
constexpr uint64_t kOperation = 10'000;

struct Thread {
  Thread() { sem_init(&turn, 0, 0); }
  ~Thread() { sem_destroy(&turn); }

  sem_t turn;
  bool waits = false;
  bool finished = false;
  bool timed_out = false;
  // Of the futex it waits on, or the thread it joins; null: it sleeps.
  const void* address = nullptr;
  uint64_t wakes_at = kNever;
  pthread_t handle{};
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
};

class World;
thread_local Thread* mine = nullptr;
World* world = nullptr;

// Keeps the calling thread, and those that it and they start, on the processor that it is on:
// passing the turn on between processors takes three times as long.
class OneProcessor {
 public:
  OneProcessor() {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(std::max(sched_getcpu(), 0), &here);
    was_changed_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 &&
                   sched_setaffinity(0, sizeof(here), &here) == 0;
  }
  ~OneProcessor() {
    if (was_changed_) sched_setaffinity(0, sizeof(before_), &before_);
  }

 private:
  cpu_set_t before_;
  bool was_changed_ = false;
};

// Only the thread that has the turn touches it.
class World {
 public:
  World(uint64_t seed, uint64_t calls_per_switch)
      : random_(seed), calls_per_switch_(calls_per_switch) {
    threads_.push_back(std::make_unique<Thread>());
    mine = threads_.back().get();
  }

  uint64_t now() const { return now_; }
  void Pass(uint64_t nanos) { now_ += nanos; }
  bool Dice() { return random_() % calls_per_switch_ == 0; }

  Thread* Add() {
    threads_.push_back(std::make_unique<Thread>());
    return threads_.back().get();
  }
  Thread* Find(pthread_t handle) {
    for (const auto& thread : threads_) {
      if (thread.get() != threads_.front().get() && pthread_equal(thread->handle, handle))
        return thread.get();
    }
    return nullptr;
  }
  void Forget(Thread* thread) {
    std::erase_if(threads_,
                  [&](const std::unique_ptr<Thread>& each) { return each.get() == thread; });
  }
  size_t size() const { return threads_.size(); }

  // Until somebody wakes `address`, or `wakes_at`. False: it was the time.
  bool Wait(const void* address, uint64_t wakes_at) {
    mine->waits = true;
    mine->timed_out = false;
    mine->address = address;
    mine->wakes_at = wakes_at;
    GiveTurn(Choose(/*but_not=*/nullptr));
    return !mine->timed_out;
  }
  int Wake(const void* address, int most) {
    int woken = 0;
    for (const auto& thread : threads_) {
      if (woken == most) break;
      if (!thread->waits || thread->address != address) continue;
      thread->waits = false;
      ++woken;
    }
    return woken;
  }
  // To any thread that can go on, but not to this one if there is another.
  void Yield() { GiveTurn(Choose(mine)); }
  void Switch() { GiveTurn(Choose(nullptr)); }
  void Finish() {
    mine->finished = true;
    Wake(mine, std::numeric_limits<int>::max());
    Thread* const next = Choose(mine);
    mine = nullptr;
    sem_post(&next->turn);
  }

 private:
  Thread* Choose(const Thread* but_not) {
    std::vector<Thread*>& able = able_;
    for (;;) {
      able.clear();
      Thread* first_timer = nullptr;
      for (const auto& thread : threads_) {
        if (thread->finished) continue;
        if (thread->waits && thread->wakes_at <= now_) {
          thread->waits = false;
          thread->timed_out = true;
        }
        if (!thread->waits) {
          if (thread.get() != but_not) able.push_back(thread.get());
        } else if (thread->wakes_at != kNever &&
                   (first_timer == nullptr || thread->wakes_at < first_timer->wakes_at)) {
          first_timer = thread.get();
        }
      }
      if (!able.empty()) return able[random_() % able.size()];
      if (but_not != nullptr && !but_not->finished) return mine;
      if (first_timer == nullptr) {
        fprintf(stderr, "deterministic threads: all %zu threads wait for each other\n",
                threads_.size());
        abort();
      }
      now_ = first_timer->wakes_at;
    }
  }
  void GiveTurn(Thread* next) {
    if (next == mine) return;
    Thread* const self = mine;
    sem_post(&next->turn);
    while (sem_wait(&self->turn) != 0) {
    }
  }

  const OneProcessor one_processor_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> able_;
  std::mt19937_64 random_;
  const uint64_t calls_per_switch_;
  uint64_t now_ = kStartOfTime;
};

// What a thread keeps for itself is destroyed when it ends, and that may take and give locks, too.
// So it keeps the turn until the last but one of the rounds in which the C library calls such
// destructors.
pthread_key_t EndKey();

void CountRounds(void* rounds) {
  const auto round = reinterpret_cast<uintptr_t>(rounds);
  if (round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(EndKey(), reinterpret_cast<void*>(round + 1));
  } else {
    world->Finish();
  }
}

pthread_key_t EndKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    if (pthread_key_create(&made, CountRounds) != 0) abort();
    return made;
  }();
  return key;
}

void* RunThread(void* argument) {
  auto* const thread = static_cast<Thread*>(argument);
  while (sem_wait(&thread->turn) != 0) {
  }
  mine = thread;
  pthread_setspecific(EndKey(), reinterpret_cast<void*>(uintptr_t{1}));
  return thread->routine(thread->argument);
}

uint64_t Nanos(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

// FUTEX_WAIT and FUTEX_WAKE as the kernel has them, for the turn's owner.
long Futex(const uint32_t* address, int operation, uint32_t value, const timespec* timeout) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      if (__atomic_load_n(address, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
      }
      uint64_t wakes_at = kNever;
      if (timeout != nullptr) {
        const bool is_relative = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT;
        wakes_at = Nanos(*timeout) + (is_relative ? world->now() : 0);
      }
      if (world->Wait(address, wakes_at)) return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      return world->Wake(address, static_cast<int>(value));
    default:
      fprintf(stderr, "deterministic threads: unknown futex operation %d\n", operation);
      abort();
  }
}

template <typename Function>
Function* Library(const char* name) {
  void* const address = dlsym(RTLD_NEXT, name);
  if (address == nullptr) abort();
  return reinterpret_cast<Function*>(address);
}

}  // namespace

DeterministicThreads::DeterministicThreads(uint64_t seed, uint64_t calls_per_switch) {
  ThreadPace::SwitchOff();  // it looks at how long the kernel had it wait
  if (world != nullptr) abort();
  world = new World(seed, calls_per_switch);
}

DeterministicThreads::~DeterministicThreads() {
  if (world->size() != 1) abort();
  mine = nullptr;
  delete world;
  world = nullptr;
}

void DeterministicThreads::MaySwitch() {
  if (mine == nullptr) return;
  world->Pass(kOperation);
  if (world->Dice()) world->Switch();
}

}  // namespace varve::testing

// --- In abseil's place: its clock reads the processor's ------------------------------------------

namespace absl {
ABSL_NAMESPACE_BEGIN

int64_t GetCurrentTimeNanos() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(varve::testing::Nanos(now));
}

Time Now() { return FromUnixNanos(GetCurrentTimeNanos()); }

ABSL_NAMESPACE_END
}  // namespace absl

// --- In the C library's place --------------------------------------------------------------------

using varve::testing::mine;
using varve::testing::world;

extern "C" {

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (mine != nullptr && number == SYS_futex) {
    return varve::testing::Futex(
        reinterpret_cast<const uint32_t*>(arguments[0]), static_cast<int>(arguments[1]),
        static_cast<uint32_t>(arguments[2]), reinterpret_cast<const timespec*>(arguments[3]));
  }
  static auto* const real = varve::testing::Library<long(long, ...)>("syscall");
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

int nanosleep(const timespec* duration, timespec* left) {
  if (mine != nullptr) {
    world->Wait(nullptr, world->now() + varve::testing::Nanos(*duration));
    return 0;
  }
  static auto* const real = varve::testing::Library<int(const timespec*, timespec*)>("nanosleep");
  return real(duration, left);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (mine != nullptr) {
    world->Pass(varve::testing::kLookAtTheClock);
    time->tv_sec = static_cast<time_t>(world->now() / varve::testing::kSecond);
    time->tv_nsec = static_cast<long>(world->now() % varve::testing::kSecond);
    return 0;
  }
  static auto* const real = varve::testing::Library<int(clockid_t, timespec*)>("clock_gettime");
  return real(clock, time);
}

int gettimeofday(timeval* time, void* zone) noexcept {
  if (mine != nullptr) {
    world->Pass(varve::testing::kLookAtTheClock);
    time->tv_sec = static_cast<time_t>(world->now() / varve::testing::kSecond);
    time->tv_usec = static_cast<suseconds_t>(world->now() % varve::testing::kSecond / 1000);
    return 0;
  }
  static auto* const real = varve::testing::Library<int(timeval*, void*)>("gettimeofday");
  return real(time, zone);
}

int sched_yield() noexcept {
  if (mine != nullptr) {
    world->Pass(varve::testing::kYield);
    world->Yield();
    return 0;
  }
  static auto* const real = varve::testing::Library<int()>("sched_yield");
  return real();
}

// The sanitizers' own, through which they learn of threads, where they are part of the program.
int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)
    __attribute__((weak));

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  static auto* const real =
      __interceptor_pthread_create != nullptr
          ? __interceptor_pthread_create
          : varve::testing::Library<int(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                                        void*)>("pthread_create");
  if (mine == nullptr) return real(handle, attributes, routine, argument);
  varve::testing::Thread* const thread = world->Add();
  thread->routine = routine;
  thread->argument = argument;
  const int result = real(handle, attributes, varve::testing::RunThread, thread);
  thread->handle = *handle;
  if (result != 0) world->Forget(thread);
  return result;
}

int pthread_join(pthread_t handle, void** result) {
  static auto* const real = varve::testing::Library<int(pthread_t, void**)>("pthread_join");
  if (mine == nullptr) return real(handle, result);
  varve::testing::Thread* const thread = world->Find(handle);
  if (thread == nullptr) return real(handle, result);
  if (!thread->finished) world->Wait(thread, varve::testing::kNever);
  const int joined = real(handle, result);
  world->Forget(thread);
  return joined;
}

// A call for true random numbers, as for the identity of a new store, gets the same each time.
unsigned int _ZNSt13random_device9_M_getvalEv(void*) { return 0x5EED; }

}  // extern "C"
