// Merge compression decides how a flush or a merge stores each value in its record, and counts what
// the values of each generation take.
//
//   1. A value is compressed as the policy says for its generation (db/namespaces/
//      compression_policy.h), with the dictionary of the merge, where that saves enough
//      (ValueCompressor); else it is stored plain.
//   2. A value stays as it is where the segment that it comes from was compressed in the same way
//      and with the same dictionary. So a merge compresses what is new to it, and copies the rest.
//   3. A flush compresses nothing in records: it would have to keep pace with the writers.
//   4. Values that are kept apart are compressed where a flush or a collection writes them
//      (db/compaction/value_separation.h), and a merge leaves them alone.
//
// ChooseMergeDictionary finds the dictionary: it looks at values spread over all inputs and keeps
// the dictionary that most of the input bytes were compressed with, or that of the last level,
// unless a new one would do better. Only bytes that several keys' values share get into a new one,
// so that no value stays readable in it that was purged.
//
// Thread-safety: an object belongs to the thread of one merge.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "db/compression/value_codec.h"
#include "db/compression/value_decoder.h"
#include "db/format/segment_info.h"
#include "db/namespaces/compression_policy.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"
#include "type/record.h"

namespace varve {

struct CompressionOptions {
  CompressionPolicy policy;
  std::shared_ptr<const ValueDictionary> dictionary;  // null: none
  bool leaves_records_alone = false;                  // of a flush
};

class MergeCompression {
 public:
  // `options` outlive the object.
  explicit MergeCompression(const CompressionOptions& options);

  // Returns the record that is written in place of `record`. Its views are valid until the next
  // call. Returns DataLoss if a value has to be decompressed that is damaged.
  [[nodiscard]] absl::StatusOr<RecordView> Encode(const RecordView& record);
  // Notes that the record was written. Records come in the order of their generations.
  void Count(const RecordView& written);
  // Returns what was counted since the last call.
  std::vector<CompressedBytes> TakeCounts();

 private:
  void BeginGeneration(NamespaceGeneration generation);
  // Returns whether values from the segment need nothing done to them.
  absl::StatusOr<bool> IsAsWanted(ValueDecoder* from);

  const CompressionOptions& options_;
  ValueCompressor compressor_;
  NamespaceGeneration generation_ = kNoGeneration;
  Compression wanted_;                                      // for the generation
  std::unordered_map<ValueDecoder*, bool> is_as_wanted_;    // for the generation
  std::unordered_map<ValueDecoder*, bool> has_dictionary_;  // the merge's
  std::string plain_;
  std::vector<CompressedBytes> counts_;
};

// Returns whether values of the segment are to be compressed, and are not yet as `policy` says.
bool WantsCompression(const SegmentInfo& segment, const CompressionPolicy& policy);

// Returns the dictionary for the outputs of the plan, which was made for `version`; null: none is
// worth it.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const ValueDictionary>> ChooseMergeDictionary(
    const Version& version, const CompactionPlan& plan, const CompressionPolicy& policy);

}  // namespace varve
