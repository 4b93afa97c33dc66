#include "server/config/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace varve {
namespace {

constexpr rlim_t kOwnDescriptors = 1024;  // for files of the store, beside one for each client

}  // namespace

size_t FitClients(size_t wanted) {
  const rlim_t needed = static_cast<rlim_t>(wanted) + kOwnDescriptors;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  rlim_t files = limit.rlim_cur;
  for (const rlim_t target : {std::max(limit.rlim_max, needed), limit.rlim_max, needed}) {
    const rlimit raised{target, std::max(limit.rlim_max, target)};
    if (target <= files || setrlimit(RLIMIT_NOFILE, &raised) != 0) continue;
    files = target;
    break;
  }
  if (files >= needed) return wanted;
  return files > 2 * kOwnDescriptors ? files - kOwnDescriptors : files / 2;
}

}  // namespace varve
