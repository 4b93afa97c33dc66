// What the tests of backups stand on: a store, copies of it as a server seals them, and a place
// that they go to.
//
// Thread-safety: one thread at a time uses a fixture.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "tools/backup/backup_place.h"
#include "tools/backup/backup_writer.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/status.h"
#include "varve/checkpoint.h"
#include "varve/compaction_picker.h"
#include "varve/storage_engine.h"

namespace varve::testing {

using Keys = std::map<std::string, std::string>;
// By the name of the namespace, or the number of the database.
using Spaces = std::map<std::string, Keys>;

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
// Flips a bit of the file, in an inode of its own.
inline void FlipBit(const std::string& path, uint64_t offset, int bit) {
  std::string bytes = ReadBytes(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << bit));
  std::filesystem::remove(path);
  WriteBytes(path, bytes);
}
// Returns the path of the time file in the directory.
inline std::string TimeFileOf(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".tim") return entry.path().string();
  return "";
}
// All files below the directory, with their bytes; directories have "/" behind their names.
inline std::map<std::string, std::string> FilesBelow(const std::string& directory) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(directory)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string().substr(directory.size() + 1);
    if (entry.is_directory()) {
      files[path + "/"] = "";
    } else {
      files[path] = ReadBytes(entry.path().string());
    }
  }
  return files;
}

// Segments stay as they were flushed.
class NeverMerges final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }
};

class BackupTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSealed = ManualClock::kStart + 1'000'000'000;

  BackupTest() {
    options_.sync = Durability::kNone;
    options_.clock = &clock_;
    options_.value_separation_size = 2048;
    options_.write_buffer_size = 1 << 20;
    options_.log_file_size = 256 << 10;
  }

  std::string store_path() const { return dir_.File("store"); }
  std::string sealed_path() const { return dir_.File("sealed"); }
  std::string place_path() const { return dir_.File("dest"); }

  void OpenStore() {
    auto opened = StorageEngine::Open(store_path(), options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  SequenceNumber Commit(WriteBatch* batch) {
    const auto committed = store_->Write({}, batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    batch->Clear();
    return committed.ok() ? committed->sequence : kNoSequence;
  }
  // Small values and large ones, which are kept apart.
  void Fill(int first, int count, const std::string& text) {
    WriteBatch batch;
    for (int i = first; i < first + count; ++i) {
      const std::string value = fmt::format("{} of {}", text, i);
      batch.Put(fmt::format("key{:05}", i), i % 10 == 0 ? value + std::string(3000, 'v') : value);
    }
    Commit(&batch);
    ASSERT_TRUE(store_->Flush().ok());
  }

  // Copies the files of a checkpoint, as a server seals it, to a directory.
  BackupOrigin Seal() {
    const std::string path = dir_.File("checkpoint"), to = sealed_path();
    const auto checkpoint = CreateCheckpoint(store_.get(), path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    std::filesystem::remove_all(to);
    std::filesystem::create_directory(to);
    for (const CheckpointFile& file : checkpoint->files)
      std::filesystem::copy_file(path + "/" + file.name, to + "/" + file.name);
    std::filesystem::remove_all(path);
    sealed_ms_ += 1000;
    return {.store_id = checkpoint->store_id,
            .history_id = checkpoint->history_id,
            .version = checkpoint->version,
            .instant_ms = checkpoint->instant_ms,
            .sealed_ms = sealed_ms_};
  }

  // Copies the sealed files to the place, as a client does that fetches them.
  static absl::StatusOr<std::string> Copy(BackupPlace* place, const std::string& from,
                                          const BackupOrigin& origin, bool incremental) {
    BackupWriter writer(place);
    VARVE_RETURN_IF_ERROR(writer.Begin(origin, incremental));
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFileSystem()->List(from));
    for (const std::string& name : names) {
      const std::string bytes = ReadBytes(from + "/" + name);
      VARVE_ASSIGN_OR_RETURN(const bool shared, writer.Share(name, bytes.size()));
      if (shared) continue;
      VARVE_RETURN_IF_ERROR(writer.BeginFile(name, bytes.size()));
      for (size_t offset = 0; offset < bytes.size(); offset += 10'000)
        VARVE_RETURN_IF_ERROR(writer.Append(std::string_view(bytes).substr(offset, 10'000)));
      VARVE_RETURN_IF_ERROR(writer.EndFile());
    }
    return writer.Seal();
  }
  // Makes a backup of the store as it is.
  std::string BackUp(bool incremental) {
    const BackupOrigin origin = Seal();
    auto place = BackupPlace::Open(PosixFileSystem(), place_path());
    EXPECT_TRUE(place.ok()) << place.status();
    if (!place.ok()) return "";
    const auto id = Copy(place->get(), sealed_path(), origin, incremental);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
  std::string PathOf(const std::string& id) const { return place_path() + "/" + id; }

  static Spaces ContentsOf(Store* store) {
    Spaces spaces;
    const auto list = store->Namespaces();
    EXPECT_TRUE(list.ok()) << list.status();
    for (const NamespaceDescription& space : list->namespaces) {
      Keys& keys = spaces[space.name.empty() ? fmt::to_string(space.id) : space.name];
      const auto cursor = store->NewIterator({.space = space.id}, "", "", nullptr);
      for (cursor->SeekToFirst(); cursor->Valid(); cursor->Next())
        keys.emplace(cursor->key(), cursor->value());
      EXPECT_TRUE(cursor->status().ok()) << cursor->status();
      const auto count = store->Count({.space = space.id}, "", "");
      EXPECT_TRUE(count.ok() && count->keys == keys.size()) << space.id;
    }
    return spaces;
  }
  // Opens the store and closes it again.
  Spaces ContentsAt(const std::string& path) const {
    EngineOptions options = options_;
    options.create_if_missing = false;
    auto store = StorageEngine::Open(path, options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? ContentsOf(store->get()) : Spaces();
  }

  TempDir dir_;
  ManualClock clock_;
  EngineOptions options_;
  std::unique_ptr<StorageEngine> store_;
  uint64_t sealed_ms_ = kSealed;
};

}  // namespace varve::testing
