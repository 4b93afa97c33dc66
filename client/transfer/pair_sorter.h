// The pair sorter sorts more pairs than fit into memory: it writes sorted runs of 64 MiB to
// temporary files, which have no name, and merges them. Of pairs with the same key the last one
// stays.
//
// Thread-safety: one thread at a time uses a sorter.
// Invariants: the memory is a run, and later 64 KiB for each run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

class PairSorter {
 public:
  static constexpr size_t kRunBytes = size_t{64} << 20;

  explicit PairSorter(size_t run_bytes = kRunBytes) : run_bytes_(run_bytes) {}

  [[nodiscard]] absl::Status Add(std::string_view key, std::string_view value);
  // No Add() follows.
  [[nodiscard]] absl::Status Finish();
  // Takes the next pair in the order of keys; false at the end.
  // Requires: Finish() was called.
  [[nodiscard]] absl::StatusOr<bool> Next(std::string* key, std::string* value);
  size_t runs() const { return runs_.size(); }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Run {
    std::unique_ptr<std::FILE, CloseFile> file;
    std::string key, value;  // the next pair
    bool ended = false;
  };
  struct Pair {
    size_t offset;
    uint32_t key_size;
    uint32_t value_size;
  };

  std::string_view KeyOf(const Pair& pair) const {
    return std::string_view(bytes_).substr(pair.offset, pair.key_size);
  }
  absl::Status WriteRun();
  static absl::Status ReadPair(Run* run);
  // Returns whether the next pair of `a` comes behind that of `b`; of the same key, the newer run's
  // comes first.
  bool ComesLater(size_t a, size_t b) const;

  const size_t run_bytes_;
  std::string bytes_;        // keys and values of the run being filled
  std::vector<Pair> pairs_;  // of it
  std::vector<Run> runs_;    // oldest first
  std::vector<size_t> heap_;
};

}  // namespace varve
