#include "util/os/disk_sense.h"

#include <sys/resource.h>

namespace varve {

uint64_t DiskSense::BlocksReadForThread() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<uint64_t>(usage.ru_inblock) : 0;
}

bool ThreadReadsDisk() {
  thread_local DiskSense sense;
  return sense.ReadsDisk();
}

}  // namespace varve
