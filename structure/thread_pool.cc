#include "structure/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace varve {

ThreadPool::ThreadPool(std::string name, size_t threads, size_t queue_capacity) : queue_(queue_capacity) {
  threads = std::max<size_t>(threads, 1);
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
    pthread_setname_np(threads_.back().native_handle(), fmt::format("{:.12}-{}", name, i).substr(0, 15).c_str());
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
