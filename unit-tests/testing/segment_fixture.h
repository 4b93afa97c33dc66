// What the tests of segments share: records that own their bytes, and a directory with one or more
// segments in it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "db/format/file_names.h"
#include "db/segment/segment.h"
#include "db/segment/segment_builder.h"
#include "db/segment/segment_caches.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/hash.h"
#include "util/os/file_system.h"

namespace varve::testing {

struct OwnedRecord {
  std::string key;
  std::string value;
  SequenceNumber sequence = 1;
  RecordKind kind = RecordKind::kValue;
  uint8_t flags = kNoFlags;
  uint64_t expiry_ms = 0;
  std::string metadata;

  RecordView view() const { return {key, value, metadata, sequence, expiry_ms, kind, flags}; }
};

inline bool Before(const OwnedRecord& a, const OwnedRecord& b) {
  return CompareInternal(a.key, a.sequence, b.key, b.sequence) < 0;
}

inline OwnedRecord Copy(const RecordView& record) {
  return {std::string(record.key),
          std::string(record.value),
          record.sequence,
          record.kind,
          record.flags,
          record.expiry_ms,
          std::string(record.metadata)};
}

inline bool operator==(const OwnedRecord& a, const OwnedRecord& b) {
  return a.key == b.key && a.value == b.value && a.sequence == b.sequence && a.kind == b.kind &&
         a.flags == b.flags && a.expiry_ms == b.expiry_ms && a.metadata == b.metadata;
}

inline std::string Describe(const OwnedRecord& record) {
  return record.key.substr(0, 40) + "@" + std::to_string(record.sequence) + " (" +
         std::to_string(record.value.size()) + " bytes)";
}
inline void PrintTo(const OwnedRecord& record, std::ostream* out) { *out << Describe(record); }

// Builds segments in a directory of its own. Sizes of the caches in bytes.
class SegmentFixture {
 public:
  explicit SegmentFixture(size_t table_bytes = 64 << 20, size_t block_bytes = 16 << 20)
      : caches(std::make_unique<SegmentCaches>(table_bytes, block_bytes)) {}

  std::string Path(uint64_t number) const { return SegmentPath(directory.path(), number); }

  SegmentInfo Build(uint64_t number, const std::vector<OwnedRecord>& records,
                    uint32_t block_size = 4096, const std::vector<RangeTombstone>& tombstones = {},
                    bool hand_over = false) {
    SegmentBuilder::Options options;
    options.directory = directory.path();
    options.number = number;
    options.block_size = block_size;
    options.caches = hand_over ? caches.get() : nullptr;
    options.shares_keys = shares_keys;
    auto builder = SegmentBuilder::Create(PosixFileSystem(), options);
    EXPECT_TRUE(builder.ok()) << builder.status();
    for (const OwnedRecord& record : records) {
      const absl::Status added = (*builder)->Add(record.view());
      EXPECT_TRUE(added.ok()) << added;
    }
    for (const RangeTombstone& tombstone : tombstones) {
      const absl::Status added = (*builder)->AddRangeTombstone(tombstone);
      EXPECT_TRUE(added.ok()) << added;
    }
    absl::StatusOr<SegmentInfo> info = (*builder)->Finish();
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? *info : SegmentInfo();
  }

  std::shared_ptr<Segment> Open(const SegmentInfo& info) {
    auto segment = Segment::Open(PosixFileSystem(), directory.path(), info, caches.get());
    EXPECT_TRUE(segment.ok()) << segment.status();
    return segment.ok() ? *segment : nullptr;
  }

  TempDir directory;
  std::unique_ptr<SegmentCaches> caches;
  bool shares_keys = false;  // of the segments that are built
};

// A point lookup's answer as one value: what was found, nothing, or an error.
struct Lookup {
  absl::Status status;
  bool found = false;
  OwnedRecord record;
};
inline Lookup Get(Segment& segment, std::string_view key, SequenceNumber at = kMaxSequence,
                  bool fill_cache = true) {
  FoundRecord found;
  const absl::StatusOr<bool> result = segment.Get(key, HashKey(key), at, fill_cache, &found);
  if (!result.ok()) return {result.status(), false, {}};
  return {absl::OkStatus(), *result, *result ? Copy(found.record) : OwnedRecord()};
}

inline std::string NumberedKey(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string("\0\0\0\1", 4) + "user:" + std::string(12 - digits.size(), '0') + digits;
}

// `count` keys in order, each with one version.
inline std::vector<OwnedRecord> NumberedRecords(uint64_t count, size_t value_size,
                                                uint64_t step = 2) {
  std::vector<OwnedRecord> records(count);
  for (uint64_t i = 0; i < count; ++i) {
    records[i].key = NumberedKey(i * step);
    records[i].value.assign(value_size, static_cast<char>('a' + i % 26));
    records[i].sequence = i + 1;
  }
  return records;
}

// Keys of many lengths, up to `max_versions` versions each, values of `value_sizes`, tombstones,
// and every optional field.
inline std::vector<OwnedRecord> RandomRecords(uint64_t seed, size_t count,
                                              const std::vector<size_t>& value_sizes,
                                              int max_versions) {
  std::mt19937_64 random(seed);
  std::vector<OwnedRecord> records;
  SequenceNumber sequence = 0;
  while (records.size() < count) {
    std::string key(4, '\0');
    key.resize(4 + random() % 12);
    for (size_t i = 4; i < key.size(); ++i)
      key[i] = static_cast<char>(random() % 4 == 0 ? random() % 256 : 'a' + random() % 3);
    const uint64_t versions = 1 + (random() % 3 == 0 ? random() % max_versions : 0);
    for (uint64_t i = 0; i < versions; ++i) {
      OwnedRecord record;
      record.key = key;
      record.sequence = sequence += 1 + random() % 3;
      if (random() % 5 == 0) {
        record.kind = RecordKind::kTombstone;
      } else {
        record.value.assign(value_sizes[random() % value_sizes.size()],
                            static_cast<char>(random()));
      }
      if (random() % 6 == 0) {
        record.flags |= kHasExpiry;
        record.expiry_ms = random();
      }
      if (random() % 6 == 0) {
        record.flags |= kHasMetadata;
        record.metadata.assign(random() % 20, 'm');
      }
      records.push_back(std::move(record));
    }
  }
  std::sort(records.begin(), records.end(), Before);
  return records;
}

}  // namespace varve::testing
