#include "util/thread_setup.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace varve {
namespace {

constexpr size_t kLongestName = 15;
constexpr int kBackgroundNice = 5;

}  // namespace

void NameThread(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, kLongestName).c_str()); }

// Where the kernel refuses, the thread goes on as it was.
void YieldToForeground() {
  const sched_param unused{};
  (void)sched_setscheduler(0, SCHED_BATCH, &unused);
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kBackgroundNice);
}

}  // namespace varve
