#include "unit-tests/corruption/store_image.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/coding.h"
#include "varve/storage_engine.h"

namespace varve::testing {
namespace {

std::string Key(int i) { return fmt::format("key{:04}", i); }

class ImageBuilder {
 public:
  ImageBuilder() : options_(ImageOptions(&file_system_)) {
    store_ = StorageEngine::Open(std::string(kStoreDirectory), options_).value();
  }

  void Put(int i, const std::string& value) {
    Check(store_->Put(Key(i), value));
    image_.model[Key(i)] = value;
    image_.history[Key(i)].insert(value);
    image_.probes.insert(Key(i));
  }
  void PutAll(int begin, int end, size_t size) {
    WriteBatch batch;
    for (int i = begin; i < end; ++i) {
      const std::string value(size + static_cast<size_t>(i), static_cast<char>('a' + i % 26));
      batch.Put(Key(i), value);
      image_.model[Key(i)] = value;
      image_.probes.insert(Key(i));
    }
    Check(store_->Write({}, &batch).status());
  }
  void Delete(int i) {
    Check(store_->Delete(Key(i)));
    image_.model.erase(Key(i));
  }
  void DeleteRange(int begin, int end) {
    Check(store_->DeleteRange(Key(begin), Key(end)));
    image_.model.erase(image_.model.lower_bound(Key(begin)), image_.model.lower_bound(Key(end)));
  }
  void Clear() {
    WriteBatch batch;
    batch.ClearNamespace();
    Check(store_->Write({}, &batch).status());
    image_.model.clear();
  }
  void Flush() { Check(store_->Flush()); }

  StoreImage Finish(bool clean) {
    for (int i = 0; i < 30; ++i) image_.probes.insert(fmt::format("key{:04}x", i * 10));
    if (clean) {
      Check(store_->Close());
    } else {
      // The log notes that its last group was acknowledged when it has rested for a second.
      for (int i = 0; i < 600 && !LastGroupIsMarked(); ++i) absl::SleepFor(absl::Milliseconds(50));
      EXPECT_TRUE(LastGroupIsMarked());
    }
    image_.files = file_system_.files();
    store_.reset();
    return std::move(image_);
  }

 private:
  bool LastGroupIsMarked() const {
    const SequenceNumber last = store_->durable_sequence();
    for (const auto& [path, bytes] : file_system_.files()) {
      const std::optional<uint64_t> number = ParseLogFileName(path.substr(path.find('/') + 1));
      if (!number) continue;
      const uint64_t store_id = DecodeFixed64(bytes.data() + 24);
      for (uint64_t offset = kLogPageSize; offset < bytes.size(); offset += kLogPageSize) {
        const auto block =
            DecodeLogBlockHeader(std::string_view(bytes).substr(offset), *number, store_id, offset);
        if (block.has_value() && block->durable_mark == last) return true;
      }
    }
    return false;
  }
  static void Check(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  MemoryFileSystem file_system_;
  EngineOptions options_;
  std::unique_ptr<StorageEngine> store_;
  StoreImage image_;
};

class Reader {
 public:
  Reader(const StoreImage& image, StorageEngine* store, const std::string& damaged,
         Reading* reading)
      : image_(image), store_(*store), damaged_(damaged), reading_(*reading) {}

  void Run(uint64_t variant) {
    // The first read finds the caches cold.
    if (variant % 2 == 0) ReadKeys();
    reading_.scanned = Scan(true);
    reading_.scanned &= Scan(false);
    CountAll();
    if (variant % 2 == 1) ReadKeys();
  }

 private:
  void ExpectNamed(const absl::Status& status) const {
    ASSERT_TRUE(absl::IsDataLoss(status)) << status;
    ASSERT_NE(status.message().find(damaged_ + " is damaged at offset "), std::string::npos)
        << status;
  }

  void ReadKeys() {
    std::string value;
    for (const std::string& key : image_.probes) {
      const absl::StatusOr<ReadResult> result = store_.Get({}, key, &value);
      if (!result.ok()) {
        ExpectNamed(result.status());
        ++reading_.failed_keys;
        reading_.failed.insert(key);
        continue;
      }
      const auto expected = image_.model.find(key);
      ASSERT_EQ(result->found, expected != image_.model.end()) << key;
      if (result->found) {
        ASSERT_EQ(value, expected->second) << key;
      }
    }
  }

  bool Scan(bool forward) {
    const std::unique_ptr<Iterator> iterator =
        store_.NewIterator({.fill_cache = forward}, {}, {}, nullptr);
    auto next = image_.model.begin();
    auto before = image_.model.end();
    size_t seen = 0;
    for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
         forward ? iterator->Next() : iterator->Prev()) {
      EXPECT_LT(seen, image_.model.size());
      if (seen++ >= image_.model.size()) return false;
      const auto& [key, value] = forward ? *next++ : *--before;
      EXPECT_EQ(iterator->key(), key);
      EXPECT_EQ(iterator->value(), value);
    }
    if (!iterator->status().ok()) {
      ExpectNamed(iterator->status());
      return false;
    }
    EXPECT_EQ(seen, image_.model.size());
    return true;
  }

  void CountAll() {
    const auto expect = [&](const std::string& lower, const std::string& upper) {
      const absl::StatusOr<CountResult> count = store_.Count({}, lower, upper);
      if (!count.ok()) return ExpectNamed(count.status());
      const auto begin = image_.model.lower_bound(lower);
      const auto end = upper.empty() ? image_.model.end() : image_.model.lower_bound(upper);
      EXPECT_EQ(count->keys, static_cast<uint64_t>(std::distance(begin, end)));
    };
    expect("", "");
    expect(Key(50), Key(140));
  }

  const StoreImage& image_;
  StorageEngine& store_;
  const std::string& damaged_;
  Reading& reading_;
};

}  // namespace

EngineOptions ImageOptions(FileSystem* file_system) {
  EngineOptions options;
  options.file_system = file_system;
  options.log_file_size = 64u << 10;
  options.write_buffer_size = 1u << 20;
  options.runs_per_level = 16;
  options.changes.bytes = 16u << 20;
  return options;
}

SegmentFooter FooterOf(const MemoryFileSystem::Files& files, const std::string& path) {
  MemoryFileSystem file_system(&files);
  const auto file = file_system.OpenForRead(path).value();
  return ReadSegmentFooter(*file, *ParseSegmentName(NameOf(path)), file->Size().value(), nullptr)
      .value();
}

StoreImage MakeStoreImage(bool clean) {
  spdlog::set_level(spdlog::level::off);  // each of a hundred thousand damaged stores would say so
  ImageBuilder builder;
  for (int i = 0; i < 20; ++i) builder.Put(i, "of a generation that is gone");
  builder.Clear();
  for (int i = 0; i < 120; ++i)
    builder.Put(i, fmt::format("first {} {}", i, std::string(20 + i % 30, 'a')));
  builder.Flush();
  for (int i = 0; i < 120; i += 3)
    builder.Put(i, fmt::format("second {} {}", i, std::string(60, 'b')));
  for (int i = 1; i < 120; i += 10) builder.Delete(i);
  builder.DeleteRange(20, 30);
  builder.Flush();
  for (int i = 100; i < 180; ++i)
    builder.Put(i, fmt::format("third {} {}", i, std::string(40, 'c')));
  builder.Put(150, std::string(5000, 'L'));
  builder.DeleteRange(110, 115);
  builder.DeleteRange(40, 44);
  builder.Put(41, "back again");
  builder.Flush();
  builder.DeleteRange(170, 175);
  builder.Flush();
  for (int i = 90; i < 100; ++i) builder.Put(i, fmt::format("logged {}", i));
  for (int i = 2; i < 8; ++i) builder.Delete(i);
  builder.DeleteRange(60, 65);
  builder.Put(200, "the last one");
  return builder.Finish(clean);
}

StoreImage MakeDenseStoreImage() {
  spdlog::set_level(spdlog::level::off);
  ImageBuilder builder;
  for (int i = 0; i < 40; i += 8) builder.PutAll(i, i + 8, 1800);
  builder.Flush();
  return builder.Finish(/*clean=*/false);
}

const StoreImage& Killed() {
  static const auto* const image = new StoreImage(MakeStoreImage(/*clean=*/false));
  return *image;
}

Reading ReadDamagedStore(const StoreImage& image, const MemoryFileSystem::Files& files,
                         const std::string& damaged, uint64_t variant) {
  MemoryFileSystem file_system(&files);
  EngineOptions options = ImageOptions(&file_system);
  if (variant % 3 == 1) options.offset_table_cache_size = options.block_cache_size = 0;
  if (variant % 3 == 2) options.block_cache_size = 0;
  if (variant % 3 != 1) options.offset_table_cache_size = options.block_cache_size = 1u << 20;
  Reading reading;
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(std::string(kStoreDirectory), options);
  reading.opened = store.status();
  if (store.ok()) Reader(image, store->get(), damaged, &reading).Run(variant);
  return reading;
}

Content ContentOf(const MemoryFileSystem::Files& files) {
  MemoryFileSystem file_system(&files);
  const auto store = StorageEngine::Open(std::string(kStoreDirectory), ImageOptions(&file_system));
  EXPECT_TRUE(store.ok()) << store.status();
  Content content;
  if (!store.ok()) return content;
  const auto iterator = (*store)->NewIterator({}, {}, {}, nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    content[std::string(iterator->key())] = iterator->value();
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  std::string value;
  for (const std::string& key : Killed().probes) {
    const auto read = (*store)->Get({}, key, &value);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) continue;
    const auto found = content.find(key);
    EXPECT_EQ(read->found, found != content.end()) << key;
    if (read->found) {
      EXPECT_EQ(value, found->second);
    }
  }
  const auto count = (*store)->Count({}, {}, {});
  EXPECT_TRUE(count.ok() && count->keys == content.size()) << count.status();
  return content;
}

uint64_t DamageStep() {
  const char* text = getenv("VARVE_TEST_DAMAGE_STEP");
  return text == nullptr ? 1 : std::max<uint64_t>(1, strtoull(text, nullptr, 10));
}

}  // namespace varve::testing
