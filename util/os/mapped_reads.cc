#include "util/os/mapped_reads.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/prefetch.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"
#include "util/os/forwarding_file_system.h"

namespace varve {
namespace {

// A longer read gains little from a mapping, and the kernel reads ahead for calls.
constexpr size_t kLongestMappedRead = size_t{64} << 10;
// A file that is read so many times is worth a mapping.
constexpr uint32_t kReadsBeforeMapping = 16;
// A thread looks at its page faults after so many mapped reads.
constexpr uint32_t kReadsBetweenLooks = 64;
// So many reads are made by call once a mapped one went to the disk.
constexpr uint32_t kReadsByCall = 8192;
// Bytes of a read that are prefetched; the processor's own prefetcher goes on from there.
constexpr uint64_t kMostPrefetched = 512;
constexpr uintptr_t kPageSize = 4096;
// One page fault maps so many bytes at most, where the kernel holds the neighbouring pages.
constexpr uint64_t kBytesAFault = uint64_t{64} << 10;

// A guard says which copy a thread is making, and where the thread goes on if it fails.
struct Guard {
  sigjmp_buf place;
  const char* begin = nullptr;
  const char* end = nullptr;
};

thread_local Guard* guard_of_this_thread = nullptr;
struct sigaction earlier_action;

void OnBusError(int signal, siginfo_t* info, void* context) {
  Guard* const guard = guard_of_this_thread;
  const char* const address = static_cast<const char*>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // else somebody sent it
  if (is_fault && guard != nullptr && address >= guard->begin && address < guard->end)
    siglongjmp(guard->place, 1);
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0 && earlier_action.sa_sigaction != nullptr) {
    earlier_action.sa_sigaction(signal, info, context);
  } else if (earlier_action.sa_handler != SIG_DFL && earlier_action.sa_handler != SIG_IGN) {
    earlier_action.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);
    if (!is_fault) ::raise(signal);  // else the instruction fails again, and ends the process
  }
}

// All mappings of the process, and how much of them is resident.
class Mappings {
 public:
  static Mappings& Get() {
    static Mappings* const mappings = new Mappings;  // lives as long as any file may
    return *mappings;
  }

  void RaiseBudget(uint64_t budget) {
    std::call_once(base_once_, [this] { base_ = ResidentFilePages(); });
    uint64_t now = budget_.load(std::memory_order_relaxed);
    while (now < budget && !budget_.compare_exchange_weak(now, budget, std::memory_order_relaxed)) {
    }
  }
  void Add(const char* begin, uint64_t size) {
    absl::MutexLock lock(&mutex_);
    mappings_.push_back({begin, size});
  }
  void Remove(const char* begin) {
    absl::MutexLock lock(&mutex_);
    const auto it = std::find_if(mappings_.begin(), mappings_.end(),
                                 [begin](const Mapping& m) { return m.begin == begin; });
    VARVE_ASSERT(it != mappings_.end());
    *it = mappings_.back();
    mappings_.pop_back();
  }
  // Notes that up to `bytes` more are resident, and gives all pages back if there are too many.
  void NoteMapped(uint64_t bytes) {
    const uint64_t budget = budget_.load(std::memory_order_relaxed);
    if (resident_at_most_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= budget) return;
    // One thread looks how many there really are.
    if (!mutex_.TryLock()) return;
    uint64_t resident = ResidentMappings();
    if (resident > budget - budget / 4) {
      for (const Mapping& mapping : mappings_) {
        ::madvise(const_cast<char*>(mapping.begin), mapping.size, MADV_DONTNEED);
      }
      resident = ResidentMappings();
    }
    resident_at_most_.store(resident, std::memory_order_relaxed);
    mutex_.Unlock();
  }

 private:
  struct Mapping {
    const char* begin;
    uint64_t size;
  };

  // Returns what is resident beyond the program and its libraries.
  uint64_t ResidentMappings() const {
    const uint64_t resident = ResidentFilePages();
    return resident - std::min(resident, base_);
  }
  static uint64_t ResidentFilePages() {
    std::unique_ptr<FILE, int (*)(FILE*)> file(::fopen("/proc/self/statm", "re"), ::fclose);
    unsigned long long total = 0, resident = 0, of_files = 0;
    if (file == nullptr ||
        std::fscanf(file.get(), "%llu %llu %llu", &total, &resident, &of_files) != 3)
      return UINT64_MAX;  // rather give back too much
    return of_files * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }

  absl::Mutex mutex_;
  std::vector<Mapping> mappings_ ABSL_GUARDED_BY(mutex_);
  std::once_flag base_once_;
  uint64_t base_ = 0;  // resident pages of files before anything was mapped
  std::atomic<uint64_t> budget_{0};
  std::atomic<uint64_t> resident_at_most_{0};
};

// A read choice decides, for one thread, between a mapped read and one by call.
class ReadChoice {
 public:
  bool IsMapped() {
    if (by_call_ > 0) [[unlikely]] {
      --by_call_;
      return false;
    }
    if (until_look_ == 0) [[unlikely]]
      return Look();
    --until_look_;
    return true;
  }
  bool ExpectsMapped() const { return by_call_ == 0; }

 private:
  bool Look() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    const bool from_disk = usage.ru_majflt > from_disk_;
    const auto mapped = static_cast<uint64_t>(usage.ru_minflt - mapped_);
    from_disk_ = usage.ru_majflt;
    mapped_ = usage.ru_minflt;
    until_look_ = kReadsBetweenLooks;
    if (mapped > 0) Mappings::Get().NoteMapped(mapped * kBytesAFault);
    if (from_disk) by_call_ = kReadsByCall;
    return !from_disk;
  }

  uint32_t by_call_ = 0;
  uint32_t until_look_ = 0;
  long from_disk_ = 0;  // page faults of the thread that waited for the disk, at the last look
  long mapped_ = 0;     // those that did not
};

thread_local ReadChoice choice_of_this_thread;

class MappedFile final : public ForwardingFile {
 public:
  explicit MappedFile(std::unique_ptr<File> file) : ForwardingFile(std::move(file)) {}
  ~MappedFile() override {
    if (const char* begin = begin_.load(std::memory_order_relaxed); begin != nullptr) {
      Mappings::Get().Remove(begin);
      ::munmap(const_cast<char*>(begin), mapped_size_);
    }
  }

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    if (size <= kLongestMappedRead && choice_of_this_thread.IsMapped()) {
      const char* const begin = Begin();
      const uint64_t end = size_.load(std::memory_order_relaxed);
      if (begin != nullptr && offset < end && size <= end - offset) {
        if (GuardedCopy(begin + offset, size, buffer)) return size;
        NoteShortened();
      }
    }
    return ForwardingFile::Read(offset, size, buffer);
  }
  // Asks memory where the thread reads mappings, else the disk.
  bool Prefetch(uint64_t offset, uint64_t size) const override {
    const char* const begin = begin_.load(std::memory_order_acquire);
    const uint64_t end = size_.load(std::memory_order_relaxed);
    if (begin == nullptr || size > kLongestMappedRead || !choice_of_this_thread.ExpectsMapped())
      return ForwardingFile::Prefetch(offset, size);
    if (offset < end)
      PrefetchLines(begin + offset, 0, std::min({size, end - offset, kMostPrefetched}));
    return true;
  }

 private:
  // Returns the mapping, or null if the file has none (yet).
  const char* Begin() const {
    const char* const begin = begin_.load(std::memory_order_acquire);
    if (begin != nullptr || reads_.load(std::memory_order_relaxed) > kReadsBeforeMapping) [[likely]]
      return begin;
    if (reads_.fetch_add(1, std::memory_order_relaxed) != kReadsBeforeMapping) return nullptr;
    const absl::StatusOr<uint64_t> size = Size();
    if (!size.ok() || *size == 0) return nullptr;
    const char* const mapped = file().Map(*size);
    if (mapped == nullptr) return nullptr;
    if (!TryWithMemory([&] { Mappings::Get().Add(mapped, *size); })) {
      ::munmap(const_cast<char*>(mapped), *size);
      return nullptr;
    }
    mapped_size_ = *size;
    size_.store(*size, std::memory_order_relaxed);
    begin_.store(mapped, std::memory_order_release);
    return mapped;
  }
  // A copy failed: the log may have given the file up and cut it behind its last record.
  void NoteShortened() const {
    const absl::StatusOr<uint64_t> size = Size();
    if (size.ok() && *size < size_.load(std::memory_order_relaxed))
      size_.store(*size, std::memory_order_relaxed);
  }

  mutable std::atomic<uint32_t> reads_{0};
  mutable std::atomic<const char*> begin_{nullptr};
  mutable std::atomic<uint64_t> size_{0};  // how much of the mapping the file has
  mutable uint64_t mapped_size_ = 0;       // set before begin_
};

class MappedReadsFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_->OpenForRead(path));
    return std::make_unique<MappedFile>(std::move(file));
  }
};

}  // namespace

void InstallMappedReadGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    // The handler is left by a jump that leaves the mask of signals alone.
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &earlier_action);
  });
}

bool GuardedCopy(const char* from, size_t size, char* to) {
  Guard guard;
  // The address of a page that the memory lost is that of its first byte.
  guard.begin = from - reinterpret_cast<uintptr_t>(from) % kPageSize;
  guard.end = from + size;
  if (sigsetjmp(guard.place, 0) != 0) {
    guard_of_this_thread = nullptr;
    return false;
  }
  guard_of_this_thread = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  guard_of_this_thread = nullptr;
  return true;
}

FileSystem* MappedFileSystem(uint64_t budget) {
  InstallMappedReadGuard();
  Mappings::Get().RaiseBudget(budget);
  static MappedReadsFileSystem* const file_system = new MappedReadsFileSystem(PosixFileSystem());
  return file_system;
}

}  // namespace varve
