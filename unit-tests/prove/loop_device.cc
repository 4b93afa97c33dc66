#include "unit-tests/prove/loop_device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr off_t kImageSize = 512 << 20;
// EXT4_IOC_SHUTDOWN, which no header of user space has.
constexpr unsigned long kShutdown = _IOR('X', 125, uint32_t);

}  // namespace

LoopDevice::LoopDevice(const std::string& directory)
    : image_(directory + "/disk.image"),
      path_(directory + "/disk"),
      log_(directory + "/disk.log") {}

absl::StatusOr<std::unique_ptr<LoopDevice>> LoopDevice::Mount(const std::string& directory) {
  std::unique_ptr<LoopDevice> device(new LoopDevice(directory));
  if (geteuid() != 0) return absl::UnavailableError("mounting a file system takes root");
  const int image = open(device->image_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (image < 0) return IoError(errno, "open", device->image_);
  const bool sized = ftruncate(image, kImageSize) == 0;
  close(image);
  if (!sized || mkdir(device->path_.c_str(), 0700) != 0)
    return IoError(errno, "make", device->path_);
  absl::Status status = device->Run("mkfs.ext4", {"-q", "-F", device->image_});
  if (status.ok()) status = device->Run("mount", {"-o", "loop", device->image_, device->path_});
  if (!status.ok()) return absl::UnavailableError(std::string(status.message()));
  device->mounted_ = true;
  return device;
}

LoopDevice::~LoopDevice() {
  // It is removed with its directory anyway.
  if (mounted_) Run("umount", {"-l", path_}).IgnoreError();
}

absl::Status LoopDevice::CutPower(Cut cut) const {
  const int root = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return IoError(errno, "open", path_);
  auto flags = static_cast<uint32_t>(cut);
  const int result = ioctl(root, kShutdown, &flags);
  const int error = errno;
  close(root);
  if (result != 0)
    return absl::InternalError(fmt::format("EXT4_IOC_SHUTDOWN: {}", strerror(error)));
  return absl::OkStatus();
}

absl::Status LoopDevice::Remount() {
  // A tracer that has just lost what it traced may hold it for a moment.
  absl::Status unmounted = Run("umount", {path_});
  for (int i = 0; i < 100 && !unmounted.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    unmounted = Run("umount", {path_});
  }
  VARVE_RETURN_IF_ERROR(unmounted);
  mounted_ = false;
  VARVE_RETURN_IF_ERROR(Run("mount", {"-o", "loop", image_, path_}));
  mounted_ = true;
  return absl::OkStatus();
}

absl::Status LoopDevice::Run(const std::string& program,
                             const std::vector<std::string>& arguments) const {
  if (testing::Process(program, arguments, log_).Wait() == 0) return absl::OkStatus();
  return absl::InternalError(fmt::format("{} {}: {}", program, fmt::join(arguments, " "),
                                         testing::ReadFile(log_).substr(0, 200)));
}

}  // namespace varve::prove
