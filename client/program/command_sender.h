// A command sender hands each file of an archive to a command of the user on its standard input,
// such as `rclone rcat remote:{}`, where {} stands for the file's name in the archive. The file has
// arrived once the command has ended with 0; else the same is tried again, with growing pauses.
//
// The command runs in a shell, in a process group of its own, so that Ctrl-C ends the archiver and
// lets the command finish. Its output goes to standard error.
//
// Thread-safety: All threads may send.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tools/archive/archive_sender.h"

namespace varve {

class CommandSender final : public ArchiveSender {
 public:
  using Stopped = std::function<bool()>;
  using Say = std::function<void(const std::string& line)>;

  // `once`: a command that fails is not tried again. Once `stopped` returns true nothing is, and a
  // command that runs has some seconds left.
  // Requires: IsSenderCommand(command).
  CommandSender(std::string command, bool once, Stopped stopped, Say say);

  absl::Status Send(const std::string& name, const std::string& path) override;

 private:
  absl::Status Run(const std::string& command, const std::string& name,
                   const std::string& path) const;
  absl::Status WaitFor(int process, const std::string& name) const;

  const std::string command_;
  const bool once_;
  const Stopped stopped_;
  const Say say_;
};

// Returns whether the command has a place for the name of the file, and so can be used.
bool IsSenderCommand(const std::string& command);

}  // namespace varve
