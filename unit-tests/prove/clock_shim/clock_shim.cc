// Loaded into a program with LD_PRELOAD, it sets the wall clock that the program sees off by the
// seconds in the file that VARVE_CLOCK_OFFSET names (eight bytes, looked at with each reading), as
// if somebody set the machine's clock. The steady clocks stay as they are.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile int64_t* offset = nullptr;

__attribute__((constructor)) void Begin() {
  const char* const path = getenv("VARVE_CLOCK_OFFSET");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* const page = mmap(nullptr, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset = static_cast<const int64_t*>(page);
  close(file);
}

int64_t Offset() { return offset == nullptr ? 0 : *offset; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += Offset();
  return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
