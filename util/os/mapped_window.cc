#include "util/os/mapped_window.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

namespace varve {
namespace {

// A copy under way in this thread: where it goes on if a page can't be had.
struct GuardedCopy {
  sigjmp_buf failed;
  const char* begin;  // of the mapped memory,
  const char* end;    // and what lies behind it
  sigset_t mask;      // of the thread, once it failed
};
thread_local GuardedCopy* copy_under_way = nullptr;
struct sigaction previous_action;

void OnBusError(int signal, siginfo_t* info, void* context) {
  const auto* const address = static_cast<const char*>(info->si_addr);
  GuardedCopy* const copy = copy_under_way;
  if (copy != nullptr && info->si_code > 0 && address >= copy->begin && address < copy->end) {
    copy->mask = static_cast<const ucontext_t*>(context)->uc_sigmask;
    siglongjmp(copy->failed, 1);
  }
  const bool is_access = info->si_code == BUS_ADRALN || info->si_code == BUS_ADRERR ||
                         info->si_code == BUS_OBJERR || info->si_code == BUS_MCEERR_AR;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else if (is_access || previous_action.sa_handler == SIG_DFL) {
    // As if this one were not there: an access is made again, and what somebody sent is sent again.
    ::sigaction(signal, &previous_action, nullptr);
    if (!is_access) ::raise(signal);
  }
}

bool InstallHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &previous_action) == 0;
}

// False: the kernel could not give a page of `to`, which lies in the memory from `begin` to `end`.
bool CopyGuarded(char* to, std::string_view from, const char* begin, const char* end) {
  GuardedCopy copy;
  copy.begin = begin;
  copy.end = end;
  if (sigsetjmp(copy.failed, /*savemask=*/0) != 0) {  // saving it takes a system call
    copy_under_way = nullptr;
    ::pthread_sigmask(SIG_SETMASK, &copy.mask, nullptr);
    return false;
  }
  copy_under_way = &copy;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from.data(), from.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy_under_way = nullptr;
  return true;
}

// File systems that answer what TakesWrites asks, or never shut down. xfs and overlayfs let a write
// of no bytes pass without a look.
bool IsMapped(int descriptor) {
  constexpr unsigned kMapped[] = {0xef53 /* ext4 */, 0x01021994 /* tmpfs */};
  struct statfs info;
  if (::fstatfs(descriptor, &info) != 0) return false;
  return std::find(std::begin(kMapped), std::end(kMapped), static_cast<unsigned>(info.f_type)) !=
         std::end(kMapped);
}

// A file system that shut down after an error goes on taking mapped pages, and drops them; a write
// of no bytes it refuses.
bool TakesWrites(int descriptor) {
  ssize_t written;
  do {
    written = ::pwrite(descriptor, "", 0, 0);
  } while (written < 0 && errno == EINTR);
  return written == 0;
}

}  // namespace

MappedWindow::Result MappedWindow::Write(int descriptor, uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const uint64_t begin = offset - offset % kSize;
    if ((memory_ == nullptr || begin != begin_) && !MapAt(descriptor, begin))
      return Result::kNotMapped;
    const std::string_view piece = data.substr(0, begin + kSize - offset);
    if (!CopyGuarded(memory_ + (offset - begin), piece, memory_, memory_ + kSize))
      return Result::kFailed;
    offset += piece.size();
    data.remove_prefix(piece.size());
  }
  return TakesWrites(descriptor) ? Result::kWritten : Result::kFailed;
}

// What was written before a window could not be mapped is written again, in another way: nothing is
// lost.
bool MappedWindow::MapAt(int descriptor, uint64_t begin) {
  static const bool handles_errors = InstallHandler();
  Unmap();
  if (refused_ || !handles_errors || !IsMapped(descriptor)) {
    refused_ = true;
    return false;
  }
  void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                              static_cast<off_t>(begin));
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<char*>(memory);
  begin_ = begin;
  return true;
}

void MappedWindow::Unmap() {
  if (memory_ != nullptr) ::munmap(memory_, kSize);
  memory_ = nullptr;
}

}  // namespace varve
