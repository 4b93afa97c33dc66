// An ext4 of our own, in a file that a loop device shows as a disk, whose power can be cut: the
// kernel forgets all that it had not put on the disk, and the next mount replays the journal. What
// this leaves out: a disk that had acknowledged a flush and forgets it, and a sector written in
// halves (the simulated disk of the engine's tests has both). The destructor unmounts it.
//
// Thread-safety: a device belongs to one thread.
// Requires: root, loop devices and the right to mount.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve::prove {

class LoopDevice {
 public:
  // How much of what is under way still reaches the disk (EXT4_IOC_SHUTDOWN).
  enum class Cut : uint32_t {
    kEverything = 0,  // all of it: a clean pause, then nothing more
    kJournal = 1,     // the journal's transaction that is open is committed
    kNothing = 2,     // none of it
  };

  // Makes an image in `directory` and mounts it. Unavailable: this machine doesn't allow it; the
  // message says what failed.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LoopDevice>> Mount(
      const std::string& directory);
  ~LoopDevice();

  // Returns where it is mounted.
  const std::string& path() const { return path_; }

  // From now on every write to it fails. A process that has files open on it has to end before
  // Remount.
  [[nodiscard]] absl::Status CutPower(Cut cut) const;
  // Unmounts and mounts again.
  [[nodiscard]] absl::Status Remount();

 private:
  explicit LoopDevice(const std::string& directory);

  absl::Status Run(const std::string& program, const std::vector<std::string>& arguments) const;

  const std::string image_;
  const std::string path_;
  const std::string log_;
  bool mounted_ = false;
};

}  // namespace varve::prove
