// A target that keeps a backup's files in a directory, as they are, and does at each step what a
// test asks for.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/copies/backup_target.h"

namespace varve::testing {

class FolderTarget final : public BackupTarget {
 public:
  using AtStep = std::function<absl::Status(const std::string& step)>;

  explicit FolderTarget(std::string directory, AtStep at_step = nullptr)
      : directory_(std::move(directory)), at_step_(std::move(at_step)) {}

  // Files that an earlier backup has.
  void ShareAll(std::set<std::string> names) { shared_ = std::move(names); }

  absl::Status Begin(const BackupSource& source) override {
    source_ = source;
    std::filesystem::create_directory(directory_);
    return At("begin");
  }
  absl::StatusOr<bool> Share(const std::string& name, uint64_t) override {
    names_.insert(name);
    if (const absl::Status status = At("share"); !status.ok()) return status;
    return shared_.contains(name);
  }
  absl::Status BeginFile(const std::string& name, uint64_t size) override {
    fetched_.push_back(name);
    announced_ = size;
    written_ = 0;
    file_.open(directory_ + "/" + name, std::ios::binary);
    return At("begin file");
  }
  absl::Status Append(std::string_view bytes) override {
    written_ += bytes.size();
    file_ << bytes;
    return At("append");
  }
  absl::Status EndFile() override {
    file_.close();
    if (written_ != announced_) return absl::DataLossError("a file has another size");
    return At("end file");
  }
  absl::StatusOr<std::string> Seal() override {
    if (const absl::Status status = At("seal"); !status.ok()) return status;
    return std::string("sealed");
  }

  const BackupSource& source() const { return source_; }
  const std::set<std::string>& names() const { return names_; }         // of all files
  const std::vector<std::string>& fetched() const { return fetched_; }  // in order

 private:
  absl::Status At(const std::string& step) {
    return at_step_ == nullptr ? absl::OkStatus() : at_step_(step);
  }

  const std::string directory_;
  const AtStep at_step_;
  std::set<std::string> shared_;
  BackupSource source_;
  std::set<std::string> names_;
  std::vector<std::string> fetched_;
  std::ofstream file_;
  uint64_t announced_ = 0;
  uint64_t written_ = 0;
};

}  // namespace varve::testing
