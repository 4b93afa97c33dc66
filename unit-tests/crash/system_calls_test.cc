// Files on calls that are interrupted, do only a part, or fail: what the kernel may answer, at the
// n-th call for every n. The program's own definitions of the calls stand before the C library's,
// and pass on all but the one that a test has asked to go wrong.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace {

enum class Call {
  kOpen,
  kRead,
  kWrite,
  kSync,
  kSyncDirectory,
  kWriteback,
  kTruncate,
  kLock,
  kCount
};
constexpr int kCalls = static_cast<int>(Call::kCount);

// What goes wrong on this thread: the n-th call of a kind.
struct Plan {
  bool active = false;
  Call call{};
  int nth = 0;
  int error = 0;       // 0: it does a part only
  size_t at_most = 0;  // bytes of that part
  int counted[kCalls] = {};
};
thread_local Plan plan;

bool GoesWrong(Call call) {
  if (!plan.active) return false;
  return ++plan.counted[static_cast<int>(call)] == plan.nth && plan.call == call;
}

template <typename Function>
Function* RealCall(const char* name) {
  void* const address = dlsym(RTLD_NEXT, name);
  if (address == nullptr) abort();
  return reinterpret_cast<Function*>(address);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = va_arg(list, mode_t);
  va_end(list);
  static auto* const real = RealCall<int(const char*, int, ...)>("open");
  if (!GoesWrong(Call::kOpen)) return real(path, flags, mode);
  errno = plan.error;
  return -1;
}

ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  static auto* const real = RealCall<ssize_t(int, void*, size_t, off_t)>("pread");
  if (!GoesWrong(Call::kRead)) return real(fd, buffer, size, offset);
  if (plan.error == 0) return real(fd, buffer, std::min(size, plan.at_most), offset);
  errno = plan.error;
  return -1;
}

ssize_t pwrite(int fd, const void* buffer, size_t size, off_t offset) {
  static auto* const real = RealCall<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (!GoesWrong(Call::kWrite)) return real(fd, buffer, size, offset);
  if (plan.error == 0) return real(fd, buffer, std::min(size, plan.at_most), offset);
  errno = plan.error;
  return -1;
}

#define VARVE_CALL_OF_A_DESCRIPTOR(name, call)           \
  int name(int fd) {                                     \
    static auto* const real = RealCall<int(int)>(#name); \
    if (!GoesWrong(call)) return real(fd);               \
    errno = plan.error;                                  \
    return -1;                                           \
  }
VARVE_CALL_OF_A_DESCRIPTOR(fdatasync, Call::kSync)
VARVE_CALL_OF_A_DESCRIPTOR(fsync, Call::kSyncDirectory)
#undef VARVE_CALL_OF_A_DESCRIPTOR

int sync_file_range(int fd, off_t offset, off_t size, unsigned flags) {
  static auto* const real = RealCall<int(int, off_t, off_t, unsigned)>("sync_file_range");
  if (!GoesWrong(Call::kWriteback)) return real(fd, offset, size, flags);
  errno = plan.error;
  return -1;
}

int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = RealCall<int(int, off_t)>("ftruncate");
  if (!GoesWrong(Call::kTruncate)) return real(fd, size);
  errno = plan.error;
  return -1;
}

int flock(int fd, int operation) noexcept {
  static auto* const real = RealCall<int(int, int)>("flock");
  if (!GoesWrong(Call::kLock)) return real(fd, operation);
  errno = plan.error;
  return -1;
}

}  // extern "C"

namespace varve {
namespace {

class SystemCallsTest : public ::testing::Test {
 protected:
  // Does everything there is to do with files, calls of each kind; what ended it.
  absl::Status UseFiles() {
    const testing::TempDir directory;
    const std::string path = directory.File("a"),
                      content = std::string(3000, 'a') + std::string(3000, 'b');
    FileSystem* const files = PosixFileSystem();
    plan.active = true;
    absl::Status status = [&]() -> absl::Status {
      auto lock = files->Lock(directory.File("lock"));
      if (!lock.ok()) return lock.status();
      auto file = files->OpenForWrite(path, /*create=*/true);
      if (!file.ok()) return file.status();
      for (const size_t offset : {0, 3000}) {
        if (absl::Status written = (*file)->Write(offset, content.substr(offset, 3000));
            !written.ok())
          return written;
        (*file)->StartWriteback(offset, 3000);
      }
      if (absl::Status longer = (*file)->Write(6000, "too long"); !longer.ok()) return longer;
      if (absl::Status cut = (*file)->Truncate(6000); !cut.ok()) return cut;
      if (absl::Status synced = (*file)->Sync(); !synced.ok()) return synced;
      if (absl::Status synced = files->SyncDirectory(directory.path()); !synced.ok()) return synced;
      auto reader = files->OpenForRead(path);
      if (!reader.ok()) return reader.status();
      std::string found(7000, '?');
      for (size_t offset = 0; offset < found.size(); offset += 3500) {
        const absl::StatusOr<size_t> read = (*reader)->Read(offset, 3500, found.data() + offset);
        if (!read.ok()) return read.status();
        if (offset != 0) found.resize(offset + *read);
      }
      EXPECT_TRUE(found == content) << "other bytes than were written";
      return absl::OkStatus();
    }();
    plan.active = false;
    return status;
  }

  // Calls of each kind in one UseFiles().
  std::vector<int> CountCalls() {
    plan = {};
    EXPECT_TRUE(UseFiles().ok());
    return {plan.counted, plan.counted + kCalls};
  }

  ~SystemCallsTest() override { plan = {}; }
};

// A sync that a signal interrupted ended the log, although nothing had failed.
TEST_F(SystemCallsTest, ASignalInBetweenIsNoError) {
  const std::vector<int> calls = CountCalls();
  for (int call = 0; call < kCalls; ++call) {
    ASSERT_GT(calls[call], 0);
    for (int nth = 1; nth <= calls[call]; ++nth) {
      plan = {.call = static_cast<Call>(call), .nth = nth, .error = EINTR};
      EXPECT_EQ(UseFiles(), absl::OkStatus()) << "call " << call << ", number " << nth;
      EXPECT_EQ(plan.counted[call], calls[call] + 1) << "it was made once more";
    }
  }
}

TEST_F(SystemCallsTest, APartIsFollowedByTheRest) {
  const std::vector<int> calls = CountCalls();
  for (const Call call : {Call::kRead, Call::kWrite}) {
    for (int nth = 1; nth <= calls[static_cast<int>(call)]; ++nth) {
      for (const size_t at_most : {1, 2, 511, 512, 2999}) {
        plan = {.call = call, .nth = nth, .at_most = at_most};
        EXPECT_EQ(UseFiles(), absl::OkStatus()) << "number " << nth << ", " << at_most << " bytes";
      }
    }
  }
}

// A write that wrote nothing was tried again forever.
TEST_F(SystemCallsTest, AWriteThatWritesNothingIsAnError) {
  plan = {.call = Call::kWrite, .nth = 2, .at_most = 0};
  EXPECT_TRUE(absl::IsInternal(UseFiles()));
}

TEST_F(SystemCallsTest, AnErrorIsSaidAndNothingIsTriedAgain) {
  const std::vector<int> calls = CountCalls();
  for (int call = 0; call < kCalls; ++call) {
    for (int nth = 1; nth <= calls[call]; ++nth) {
      for (const int error : {EIO, ENOSPC, EMFILE}) {
        plan = {.call = static_cast<Call>(call), .nth = nth, .error = error};
        const absl::Status status = UseFiles();
        EXPECT_EQ(plan.counted[call], nth) << "made again after an error";
        EXPECT_EQ(status.code(),
                  error == EIO ? absl::StatusCode::kInternal : absl::StatusCode::kResourceExhausted)
            << status;
      }
    }
  }
}

// A store whose directory's name was never synced would be gone after a power cut, with all that is
// in it.
TEST_F(SystemCallsTest, DirectoriesThatWereMadeOnTheWayAreOnDisk) {
  const testing::TempDir directory;
  plan = {.active = true};
  EXPECT_TRUE(PosixFileSystem()->CreateDirectory(directory.File("a/b/c")).ok());
  plan.active = false;
  EXPECT_EQ(plan.counted[static_cast<int>(Call::kSyncDirectory)], 2)
      << "the names of a and of b, but not of c";
}

}  // namespace
}  // namespace varve
