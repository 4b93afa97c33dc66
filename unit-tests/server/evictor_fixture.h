// The fixture of an evictor on a store without connections. The evictor has no thread unless a test
// starts one, so that what it does depends on the calls of the test alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "server/eviction/evictor.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/bounded_file_system.h"
#include "varve/storage_engine.h"

namespace varve::testing {

class EvictorFixture : public ::testing::Test {
 protected:
  static constexpr size_t kEntrySize = 100;
  static constexpr EvictionRule kLru{EvictionOrder::kLru};
  static constexpr NamespaceId kCache = kFirstNamedNamespace;
  static constexpr uint64_t kMemory = 24u << 20;

  // `disk_limit`: the bound of the data directory, of which a quarter is the reserve; 0: none.
  explicit EvictorFixture(uint64_t disk_limit = 0) {
    if (disk_limit != 0) {
      disk_ = std::make_unique<BoundedFileSystem>(PosixFileSystem(), data(), disk_limit,
                                                  /*least_reserve=*/disk_limit / 4);
    }
    EngineOptions options;
    options.sync = Durability::kNone;
    options.write_buffer_size = 256u << 10;
    options.file_system = BoundedOrPlain(disk_.get());
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(data(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    StartEvictor();
  }
  void StartEvictor() {
    evictor_ = std::make_unique<Evictor>(store_.get(), &clients_, &replication_);
    evictor_->Start(access(), kMemory, disk_.get(), Evictor::Work::kByCallers);
  }
  std::string data() const { return dir_.File("data"); }
  std::string access() const { return data() + "/access"; }

  // Does what CONFIG SET does.
  void Use(EvictionRule rule, uint64_t bytes) {
    store_->SetDataLimit(bytes);
    evictor_->SetDatabases(rule, bytes);
  }
  // Do what NAMESPACE CREATE, ALTER and DROP do.
  void CreateCache(const NamespaceOptions& options, NamespaceId id = kCache) {
    WriteBatch batch;
    batch.CreateNamespace({.id = id, .name = "cache" + std::to_string(id), .options = options});
    Submit(&batch);
    evictor_->NoteNamespaces();
  }
  void AlterCache(const NamespaceOptions& options, NamespaceId id = kCache) {
    WriteBatch batch;
    batch.AlterNamespace({.id = id, .name = "cache" + std::to_string(id), .options = options});
    Submit(&batch);
    evictor_->NoteNamespaces();
  }
  void DropCache(NamespaceId id = kCache) {
    WriteBatch batch;
    batch.DropNamespace(id);
    Submit(&batch);
    evictor_->NoteNamespaces();
  }

  void Submit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> written = store_->Submit(WriteOptions(), batch);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  // Returns a key of 8 bytes. Its value has 92.
  static std::string Key(size_t key) { return "k" + std::to_string(1'000'000 + key); }
  void Put(size_t from, size_t to, NamespaceId space = kDefaultNamespace) {
    for (size_t key = from; key < to; ++key) {
      WriteBatch batch;
      batch.Put(Key(key), std::string(kEntrySize - Key(key).size(), 'v'), space);
      Submit(&batch);
    }
  }
  void Delete(size_t from, size_t to, NamespaceId space = kDefaultNamespace) {
    WriteBatch batch;
    for (size_t key = from; key < to; ++key) batch.Delete(Key(key), space);
    Submit(&batch);
  }
  // Does what the thread would do in time left over.
  void FinishWork() {
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = evictor_->WorkOn();
    EXPECT_TRUE(more.ok()) << more.status();
  }

  TempDir dir_;
  ManualClock clock_;
  Clients clients_{&AccessCatalog(), ServerOptions()};
  ReplicationState replication_;
  std::unique_ptr<BoundedFileSystem> disk_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Evictor> evictor_;
};

}  // namespace varve::testing
