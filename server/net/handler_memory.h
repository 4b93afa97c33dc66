// Memory of its own for an operation that a loop gives asio again and again: asio keeps what
// handlers need for the next one only inside of its own calls, and asks the heap elsewhere.
//
//   HandlerMemory memory;                                     // outlives the operation
//   asio::post(io, WithMemory(&memory, [] { ... }));
//
// For one operation at a time, and one that fits; others go to the heap. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace varve {

class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* Allocate(size_t size) {
    if (size <= sizeof(bytes_) && !taken_.exchange(true, std::memory_order_acquire)) return bytes_;
    return ::operator new(size);
  }
  void Free(void* memory) {
    if (memory == bytes_) {
      taken_.store(false, std::memory_order_release);
    } else {
      ::operator delete(memory);
    }
  }

 private:
  alignas(std::max_align_t) char bytes_[256];
  std::atomic<bool> taken_{false};
};

template <typename T>
struct HandlerAllocator {
  using value_type = T;

  explicit HandlerAllocator(HandlerMemory* from) : memory(from) {}
  template <typename Other>
  HandlerAllocator(const HandlerAllocator<Other>& other) noexcept : memory(other.memory) {}

  T* allocate(size_t count) { return static_cast<T*>(memory->Allocate(count * sizeof(T))); }
  void deallocate(T* elements, size_t) { memory->Free(elements); }
  template <typename Other>
  bool operator==(const HandlerAllocator<Other>& other) const noexcept {
    return memory == other.memory;
  }

  HandlerMemory* memory;
};

template <typename Function>
struct HandlerWithMemory {
  using allocator_type = HandlerAllocator<void>;
  allocator_type get_allocator() const { return allocator_type(memory); }

  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    function(std::forward<Arguments>(arguments)...);
  }

  HandlerMemory* memory;
  Function function;
};

template <typename Function>
HandlerWithMemory<Function> WithMemory(HandlerMemory* memory, Function function) {
  return {memory, std::move(function)};
}

}  // namespace varve
