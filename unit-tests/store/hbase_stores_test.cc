// The store over HBase keeps to the interface: over tables in memory, which shows its own logic,
// and over the cluster that VARVE_TEST_HBASE_QUORUM names (host:port,...), if it names one.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "db/hbase/hbase_store.h"
#include "unit-tests/store/store_conformance.h"
#include "unit-tests/testing/tables_in_memory.h"

namespace varve {
namespace {

class StoreOverTables final : public StoreUnderTest {
 public:
  StoreOverTables(std::unique_ptr<HbaseClient> client, const HbaseStoreOptions& options) {
    absl::StatusOr<std::unique_ptr<HbaseStore>> opened =
        HbaseStore::Open(std::move(client), options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  Store& store() override { return *store_; }

 private:
  std::unique_ptr<HbaseStore> store_;
};

class StoreOverMemory final : public StoreUnderTest {
 public:
  Store& store() override { return store_.store(); }

 private:
  testing::TablesInMemory tables_;
  StoreOverTables store_{std::make_unique<testing::ClientInMemory>(&tables_), {}};
};

std::vector<StoreFactory> StoresOverHbase() {
  std::vector<StoreFactory> stores{{"Memory", [] { return std::make_unique<StoreOverMemory>(); }}};
#if defined(VARVE_HAS_HBASE)
  stores.push_back({"Cluster", []() -> std::unique_ptr<StoreUnderTest> {
                      const char* const quorum = std::getenv("VARVE_TEST_HBASE_QUORUM");
                      if (quorum == nullptr) return nullptr;
                      HbaseOptions of_client;
                      of_client.quorum = quorum;
                      absl::StatusOr<std::unique_ptr<HbaseClient>> client =
                          HbaseClient::Open(of_client);
                      EXPECT_TRUE(client.ok()) << client.status();
                      static int tables = 0;
                      HbaseStoreOptions options;
                      options.table =
                          "test" + std::to_string(getpid()) + "-" + std::to_string(tables++);
                      return std::make_unique<StoreOverTables>(*std::move(client), options);
                    }});
#endif
  return stores;
}

INSTANTIATE_TEST_SUITE_P(Hbase, StoreConformanceTest, ::testing::ValuesIn(StoresOverHbase()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace varve
