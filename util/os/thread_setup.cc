#include "util/os/thread_setup.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace varve {
namespace {

constexpr size_t kLongestName = 15;
constexpr int kNiceBelowForeground = 5, kHighestNice = 19;

// Returns the nice value of background threads. It counts from that of the process, which is the
// value of its first thread: a server that runs at a nice value of 10 must not have background
// threads at 5, which would take the processors from those that answer requests.
int BackgroundNice() {
  const int process = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  return std::min(process + kNiceBelowForeground, kHighestNice);
}

bool SetNice(int nice) { return setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0; }

bool SetPolicy(int policy) {
  const sched_param unused{};
  return sched_setscheduler(0, policy, &unused) == 0;
}

}  // namespace

void NameThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, kLongestName).c_str());
}

// Where the kernel refuses, the thread goes on as it was.
void YieldToForeground() {
  (void)SetPolicy(SCHED_BATCH);
  (void)SetNice(BackgroundNice());
}

bool YieldToEveryone() {
  const int nice = BackgroundNice();
  // Who may lower a nice value to this one, or below it, may also leave SCHED_IDLE with it.
  const int other = nice == kHighestNice ? nice - 1 : nice + 1;
  return SetNice(other) && SetNice(nice) && SetPolicy(SCHED_IDLE);
}

}  // namespace varve
