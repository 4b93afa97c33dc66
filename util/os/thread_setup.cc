#include "util/os/thread_setup.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace varve {
namespace {

constexpr size_t kLongestName = 15;
constexpr int kBackgroundNice = 5;

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
  (void)SetNice(kBackgroundNice);
}

bool YieldToEveryone() {
  // Who may lower a nice value to this one may also leave SCHED_IDLE with it.
  return SetNice(kBackgroundNice + 1) && SetNice(kBackgroundNice) && SetPolicy(SCHED_IDLE);
}

}  // namespace varve
