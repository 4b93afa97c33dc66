// The segment builder writes one segment: records in the order of the tree, then their offset
// table, fences, range tombstones and footer.
//
// The builder takes the memory of a file buffer and 16 bytes a distinct key, and in Finish some 25
// bytes a key more. When Finish returns, the file and its directory entry are complete and synced.
// No manifest names the file before that: after a crash the next opening of the store removes it.
//
// Thread-safety: a builder belongs to one thread.
// Invariants: records ascend in the order of the tree; [smallest, largest] of the result covers all
// records and range tombstones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/compression/value_dictionary.h"
#include "db/format/key_counts.h"
#include "db/format/range_tombstone.h"
#include "db/format/segment_info.h"
#include "db/segment/segment_fences.h"
#include "db/segment/segment_footer.h"
#include "structure/offset_table.h"
#include "type/record.h"
#include "util/os/aligned_bytes.h"
#include "util/os/file_system.h"
#include "util/os/file_writer.h"

namespace varve {

struct SegmentCaches;

class SegmentBuilder {
 public:
  struct Options {
    std::string directory;
    uint64_t number = 0;
    // Bytes of data between two fences, and the unit of the block cache; a power of two from 4 KiB
    // to 64 KiB. BlockSizeFor() chooses it so that fences stay small beside their records.
    uint32_t block_size = 4096;
    size_t expected_entries = 0;
    // Files out of use, over one of which the segment is written if it has about `expected_size`
    // bytes; null: the file is new.
    SpareFiles* spares = nullptr;
    uint64_t expected_size = 0;
    // The builder leaves the finished offset table and fences here, so that Segment::Open need not
    // read them back. May be null.
    SegmentCaches* caches = nullptr;
    // The dictionary of the compressed values that are added; null: none of them needs one.
    std::shared_ptr<const ValueDictionary> dictionary;
    // Records share bytes of their keys (db/format/key_base.h), which programs before version 4 of
    // the format do not read.
    bool shares_keys = false;
    // Called in Finish(), once everything is written, before it takes locks for which others wait:
    // those of the directory and of the caches; may be empty.
    std::function<void()> hurry;
  };
  // Returns the block size for records that have `average_record_size` bytes on average.
  static uint32_t BlockSizeFor(uint64_t average_record_size);

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SegmentBuilder>> Create(
      FileSystem* file_system, const Options& options);
  ~SegmentBuilder() = default;  // removes the file if Finish has not succeeded

  // Adds a record, whose value may be compressed. Returns InvalidArgument if the record is out of
  // order, is neither a value nor a tombstone, or has a compressed value that nobody could read,
  // and ResourceExhausted if the data would go beyond 128 GiB. After an error of the disk every
  // call fails, and the destructor removes the file.
  [[nodiscard]] absl::Status Add(const RecordView& record);
  [[nodiscard]] absl::Status AddRangeTombstone(const RangeTombstone& tombstone);
  // Returns the bytes of the file so far.
  uint64_t file_size() const { return file_->size(); }
  uint64_t entries() const { return info_.entries; }
  // Writes the rest of the file and syncs it. Returns the description of the segment.
  [[nodiscard]] absl::StatusOr<SegmentInfo> Finish();

 private:
  SegmentBuilder(FileSystem* file_system, const Options& options, std::unique_ptr<FileWriter> file);
  absl::Status CheckOrder(const RecordView& record) const;
  // Returns how many bytes of the record's key the key base has.
  uint32_t SharedBytesOf(const RecordView& record) const;
  // Notes that the record's value is compressed, and whether it takes the dictionary.
  absl::Status NoteCompressed(const RecordView& record);
  void CoverSequence(SequenceNumber sequence);
  void CoverRangeTombstones();
  // Counts the bytes of the record's separated value for the file that holds it. If the value is
  // addressable, sets `*target` and `*size`, so that the table leads to the value and not to the
  // record.
  absl::Status Refer(const RecordView& record, uint64_t* target, size_t* size);
  // Encodes table and fences as they stand on disk and fills in the footer's fields about them.
  AlignedBytes EncodeIndex(SegmentFooter* footer);
  void AppendRangeTombstones(std::string* destination) const;

  FileSystem* const file_system_;
  const Options options_;
  const std::unique_ptr<FileWriter> file_;
  SegmentInfo info_;
  std::string last_key_;
  SequenceNumber last_sequence_ = kNoSequence;
  OffsetTableBuilder table_;
  SegmentFencesBuilder fences_;
  bool holds_compressed_ = false;
  bool uses_dictionary_ = false;
  std::string key_base_;  // empty: no record before has a key
  bool holds_shared_ = false;
  std::vector<RangeTombstone> range_tombstones_;
  std::unordered_map<uint64_t, size_t> value_file_indexes_;  // into info_.value_files, by number
};

}  // namespace varve
