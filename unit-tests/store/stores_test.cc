// The stores that keep to the interface: the embedded engine, as it is opened by default and with
// write buffers so small that flush and compaction happen in the tests, and a store that makes as
// few promises as one may.
#include <utility>

#include "unit-tests/store/store_conformance.h"
#include "unit-tests/testing/delayed_store.h"
#include "unit-tests/testing/map_store.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

class EmbeddedStore final : public StoreUnderTest {
 public:
  explicit EmbeddedStore(const EngineOptions& options) {
    absl::StatusOr<std::unique_ptr<StorageEngine>> opened =
        StorageEngine::Open(directory_.path(), options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }

 private:
  testing::TempDir directory_;
  std::unique_ptr<StorageEngine> store_;
};

class StoreOfMaps final : public StoreUnderTest {
 public:
  Store& store() override { return store_; }

 private:
  testing::MapStore store_;
};

// The embedded engine on another machine, as far as callers can tell.
class StoreFarAway final : public StoreUnderTest {
 public:
  StoreFarAway() : delayed_(&embedded_.store()) {}
  Store& store() override { return delayed_; }

 private:
  EmbeddedStore embedded_{EngineOptions()};
  testing::DelayedStore delayed_;
};

std::vector<StoreFactory> LocalStores() {
  EngineOptions small;
  small.write_buffer_size = 64u << 10;
  return {{"Embedded", [] { return std::make_unique<EmbeddedStore>(EngineOptions()); }},
          {"EmbeddedSmallBuffers", [small] { return std::make_unique<EmbeddedStore>(small); }},
          {"Maps", [] { return std::make_unique<StoreOfMaps>(); }},
          {"FarAway", [] { return std::make_unique<StoreFarAway>(); }}};
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformanceTest, ::testing::ValuesIn(LocalStores()),
                         [](const auto& each) { return each.param.name; });

TEST(StoreCapabilitiesTest, TheEmbeddedEngineKeepsEveryPromiseOfThisProcess) {
  EmbeddedStore embedded((EngineOptions()));
  const StoreCapabilities capabilities = embedded.store().capabilities();
  EXPECT_TRUE(capabilities.snapshots);
  EXPECT_EQ(capabilities.atomicity, StoreCapabilities::Atomicity::kAnyKeys);
  EXPECT_TRUE(capabilities.constant_time_clone);
  EXPECT_TRUE(capabilities.constant_time_range_delete);
  EXPECT_TRUE(capabilities.exact_counts);
  EXPECT_TRUE(capabilities.size_estimates);
  EXPECT_TRUE(capabilities.quotas);
  EXPECT_TRUE(capabilities.swaps);
  EXPECT_TRUE(capabilities.history);
  EXPECT_FALSE(capabilities.remote);
}

}  // namespace
}  // namespace varve
