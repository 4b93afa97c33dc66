// The state of an import is a small text file beside the input that says how far the import came.
// --resume goes on from it.
//
//   varve-import 1
//   size 123456        bytes of the input, so that another file of the same name is noticed
//   offset 4096        where the first record begins whose reply is not known
//   line 17
//   keys 1000          imported so far
//   at-risk 0          1: behind the offset there are commands that must not be executed twice, and
//                      some may have been
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

struct ImportState {
  uint64_t size = 0;
  uint64_t offset = 0;
  uint64_t line = 1;
  uint64_t keys = 0;
  bool at_risk = false;

  // "<input>.import-state".
  static std::string PathFor(const std::string& input);
  // NotFound: there is none; DataLoss: it can't be read.
  [[nodiscard]] static absl::StatusOr<ImportState> Load(const std::string& path);
  // The old one or the new one is there whatever happens.
  [[nodiscard]] absl::Status Save(const std::string& path) const;
};

}  // namespace varve
