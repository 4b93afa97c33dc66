// Eventually waits for what another thread or another process does.
//
// Thread-safety: any thread may wait.
#pragma once

#include <chrono>
#include <thread>

namespace varve::testing {

// Returns whether `condition` comes to hold within `longest`: minutes, as machines of continuous
// integration stand still now and then.
template <typename Condition>
bool Eventually(const Condition& condition,
                std::chrono::minutes longest = std::chrono::minutes(2)) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace varve::testing
