// Looks at what other threads of the process are doing, for tests of threads that are to be asleep.
//
// Thread-safety: any thread may look.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace varve::testing {

// Returns whether the thread of this id (gettid()) sleeps.
inline bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  // Behind the name, which may hold anything.
  const size_t end_of_name = stat.rfind(") ");
  return end_of_name != std::string::npos && stat[end_of_name + 2] == 'S';
}

}  // namespace varve::testing
