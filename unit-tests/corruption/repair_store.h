// The repair of a store in a directory of its own.
//
// Thread-safety: one thread at a time uses a store.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tools/repair/repair.h"
#include "unit-tests/testing/test_store.h"

namespace varve::testing {

// Repairs the store and opens it. Returns a line for each thing that the repair calls lost.
// Requires: the store is closed.
inline std::string RepairAndOpen(TestStore* store) {
  const absl::StatusOr<RepairReport> report =
      RepairStore(PosixFileSystem(), store->directory.path(), {});
  EXPECT_TRUE(report.ok()) << report.status();
  std::string lost;
  for (const RepairReport::Entry& entry : report->lost) lost += entry.what + "\n";
  store->Open();
  return lost;
}

}  // namespace varve::testing
