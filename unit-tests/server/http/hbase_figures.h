// HbaseFigures() returns the figures that a store over HBase alone has. They are those of a new
// store, whose tables are in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/hbase/hbase_store.h"
#include "unit-tests/testing/tables_in_memory.h"

namespace varve::testing {

inline std::vector<std::pair<std::string, uint64_t>> HbaseFigures() {
  TablesInMemory tables;
  const absl::StatusOr<std::unique_ptr<HbaseStore>> store =
      HbaseStore::Open(std::make_unique<ClientInMemory>(&tables), {});
  EXPECT_TRUE(store.ok()) << store.status();
  std::vector<std::pair<std::string, uint64_t>> figures;
  for (const auto& [name, value] : (*store)->Observe().figures) {
    if (name.starts_with("hbase_")) figures.emplace_back(name, value);
  }
  return figures;
}

}  // namespace varve::testing
