#include "structure/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "util/os/thread_setup.h"

namespace varve {

ThreadPool::ThreadPool(std::string name, size_t threads, size_t queue_capacity)
    : queue_(queue_capacity) {
  threads = std::max<size_t>(threads, 1);
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) {
    try {
      threads_.emplace_back([this, thread_name = fmt::format("{:.12}-{}", name, i)] {
        NameThread(thread_name);
        Work();
      });
      // The standard library's way to say that there are no more.
    } catch (const std::system_error&) {
      break;
    }
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  queue_.Close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadPool::Work() {
  while (std::optional<Task> task = queue_.Pop()) (*task)();
}

}  // namespace varve
