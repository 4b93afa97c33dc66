#include "db/compaction/merge_compression.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "db/compression/dictionary_training.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_index.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/kept_buffer.h"
#include "util/base/status.h"

namespace varve {
namespace {

// A merge looks at this part of its input, within limits, so that small merges don't pay for more
// samples than they can gain by.
constexpr uint64_t kSampledPart = 64;
constexpr uint64_t kFewestSampled = uint64_t{512} << 10;
constexpr uint64_t kMostSampled = uint64_t{2} << 20;
constexpr uint64_t kSampledAtOnce = 4096;  // bytes of neighbouring records
constexpr uint64_t kDictionaryPart = 64;   // a dictionary takes at most this part of the values
// Shorter values have no room for what a compressed one has to save.
constexpr size_t kShortestSample = 48;

bool IsZstd(const Compression& compression) {
  return compression.method == CompressionMethod::kZstd;
}

struct Shares {
  uint64_t bytes = 0;                 // keys and values that are to be compressed with zstd
  uint8_t level = kDefaultZstdLevel;  // of most of them
  std::vector<std::shared_ptr<Segment>> segments;  // that hold some of them
};

Shares SharesOf(const CompactionPlan& plan, const CompressionPolicy& policy) {
  Shares shares;
  uint64_t most = 0;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments) {
      uint64_t of_segment = 0;
      for (const GenerationKeyCounts::Entry& entry : segment->info().live.entries()) {
        const Compression wanted = policy.Of(entry.generation);
        if (!IsZstd(wanted) || entry.counts.bytes <= 0) continue;
        const auto bytes = static_cast<uint64_t>(entry.counts.bytes);
        of_segment += bytes;
        if (bytes > most) {
          most = bytes;
          shares.level = wanted.level;
        }
      }
      if (of_segment == 0) continue;
      shares.bytes += of_segment;
      shares.segments.push_back(segment);
    }
  }
  return shares;
}

// Returns the keys of the segment's fences.
absl::StatusOr<std::vector<std::string>> FenceKeysOf(Segment* segment) {
  std::vector<std::string> keys;
  const auto add = [&keys](const SegmentFences& fences, size_t from) {
    for (size_t i = from; i < fences.count(); ++i) keys.emplace_back(fences.Key(i));
  };
  if (segment->has_index()) {
    keys.emplace_back(segment->info().smallest);
    segment->VisitFences({}, {}, 1, [&](std::string_view key) { keys.emplace_back(key); });
    if (keys.size() > 1) return keys;
    keys.clear();
  }
  // The index of a segment that is about to be replaced is worth no room in memory.
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, segment->Footer());
  if (footer->fence_count == 0) return keys;
  VARVE_ASSIGN_OR_RETURN(const auto loaded, LoadedFences::Load(segment->file(), *footer));
  add(loaded->fences(), 0);
  return keys;
}

class Sampler {
 public:
  Sampler(const CompressionPolicy& policy, ValueSamples* samples)
      : policy_(policy), samples_(*samples) {}

  // Takes about `budget` bytes of values, spread over the segment.
  absl::Status Sample(Segment* segment, uint64_t budget) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> keys, FenceKeysOf(segment));
    const uint64_t stops = std::max<uint64_t>(budget / kSampledAtOnce, 1);
    const size_t step = std::max<size_t>(keys.size() / stops, 1);
    const std::unique_ptr<InternalIterator> records = segment->NewIterator(/*fill_cache=*/false);
    const size_t before = samples_.bytes().size();
    for (size_t i = 0; i < keys.size() && samples_.bytes().size() < before + budget; i += step) {
      records->Seek(keys[i], kMaxSequence);
      VARVE_RETURN_IF_ERROR(SampleNeighbours(records.get()));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status SampleNeighbours(InternalIterator* records) {
    uint64_t seen = 0;
    for (; records->Valid() && seen < kSampledAtOnce; records->Next()) {
      const RecordView& record = records->record();
      seen += record.key.size() + record.value.size();
      // One version of a key is enough.
      if (!keys_.insert(HashKey(record.key)).second || record.kind != RecordKind::kValue ||
          IsSeparated(record) || !IsZstd(policy_.Of(GenerationOf(record.key))))
        continue;
      VARVE_ASSIGN_OR_RETURN(const std::string_view value, PlainValueOf(record, &plain_));
      if (value.size() >= kShortestSample) samples_.Add(value);
      GiveBackIfLarge(&plain_);
    }
    return records->status();
  }

  const CompressionPolicy& policy_;
  ValueSamples& samples_;
  std::unordered_set<uint64_t> keys_;  // their hashes
  std::string plain_;
};

// Returns the segment whose dictionary most of the input bytes were compressed with; of inputs
// without one, the largest segment of the last level that may have one. Null: there is none.
absl::StatusOr<Segment*> OwnerOfPresentDictionary(const Version& version, const Shares& shares) {
  struct Candidate {
    Segment* segment;
    const ValueDictionary* dictionary;
    uint64_t bytes;
  };
  std::vector<Candidate> candidates;
  for (const std::shared_ptr<Segment>& segment : shares.segments) {
    if (segment->info().compressed.empty()) continue;
    VARVE_ASSIGN_OR_RETURN(const ValueDictionary* dictionary, segment->decoder().Dictionary());
    if (dictionary == nullptr) continue;
    const auto same =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const Candidate& each) { return AreEqual(each.dictionary, dictionary); });
    if (same != candidates.end()) {
      same->bytes += segment->info().file_size;
    } else {
      candidates.push_back({segment.get(), dictionary, segment->info().file_size});
    }
  }
  if (candidates.empty() && !version.levels().empty() && !version.levels().back().runs.empty()) {
    for (const std::shared_ptr<Segment>& segment : version.levels().back().runs.front().segments) {
      if (segment->info().compressed.empty() || segment->is_damaged()) continue;
      if (!candidates.empty() && candidates.front().bytes >= segment->info().file_size) continue;
      const absl::StatusOr<const ValueDictionary*> dictionary = segment->decoder().Dictionary();
      if (!dictionary.ok() || *dictionary == nullptr) continue;
      candidates = {{segment.get(), *dictionary, segment->info().file_size}};
    }
  }
  const auto most =
      std::max_element(candidates.begin(), candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; });
  return most == candidates.end() ? nullptr : most->segment;
}

}  // namespace

MergeCompression::MergeCompression(const CompressionOptions& options)
    : options_(options), compressor_(options.dictionary) {}

void MergeCompression::BeginGeneration(NamespaceGeneration generation) {
  generation_ = generation;
  wanted_ = options_.policy.Of(generation);
  is_as_wanted_.clear();
}

absl::StatusOr<bool> MergeCompression::IsAsWanted(ValueDecoder* from) {
  if (from == nullptr) return false;
  if (const auto known = is_as_wanted_.find(from); known != is_as_wanted_.end())
    return known->second;
  bool is_as_wanted = from->CompressionOf(generation_) == wanted_;
  if (is_as_wanted && IsZstd(wanted_)) {
    auto known = has_dictionary_.find(from);
    if (known == has_dictionary_.end()) {
      VARVE_ASSIGN_OR_RETURN(const ValueDictionary* dictionary, from->Dictionary());
      known = has_dictionary_.emplace(from, AreEqual(dictionary, options_.dictionary.get())).first;
    }
    is_as_wanted = known->second;
  }
  is_as_wanted_[from] = is_as_wanted;
  return is_as_wanted;
}

absl::StatusOr<RecordView> MergeCompression::Encode(const RecordView& record) {
  // The record before this one is written.
  GiveBackIfLarge(&plain_);
  compressor_.GiveBack();
  if (options_.leaves_records_alone || record.kind != RecordKind::kValue || IsSeparated(record))
    return record;
  if (const NamespaceGeneration generation = GenerationOf(record.key); generation != generation_)
    BeginGeneration(generation);
  if (!wanted_.on() && !IsCompressed(record)) return record;
  if (wanted_.on()) {
    VARVE_ASSIGN_OR_RETURN(const bool is_as_wanted, IsAsWanted(record.decoder));
    if (is_as_wanted) return record;
  }
  RecordView result = record;
  VARVE_ASSIGN_OR_RETURN(result.value, PlainValueOf(record, &plain_));
  result.flags &= static_cast<uint8_t>(~kCompressed);
  const std::string_view compressed = compressor_.Compress(wanted_, result.value);
  if (compressed.empty()) return result;
  result.value = compressed;
  result.flags |= kCompressed;
  return result;
}

void MergeCompression::Count(const RecordView& written) {
  if (written.kind != RecordKind::kValue) return;
  if (const NamespaceGeneration generation = GenerationOf(written.key); generation != generation_)
    BeginGeneration(generation);
  if (!wanted_.on()) return;
  if (counts_.empty() || counts_.back().generation != generation_) {
    VARVE_ASSERT(counts_.empty() || counts_.back().generation < generation_);
    counts_.push_back({.generation = generation_,
                       .compression = options_.leaves_records_alone ? Compression() : wanted_});
  }
  CompressedBytes& counts = counts_.back();
  const uint64_t plain = ValueSizeOf(written);
  counts.plain_bytes += plain;
  ValueHandle handle;
  if (!IsCompressed(written)) {
    counts.stored_bytes += plain;
  } else if (!IsSeparated(written)) {
    counts.stored_bytes += written.value.size();
  } else if (DecodeValueHandle(written.value, &handle)) {
    counts.stored_bytes +=
        handle.operation_size - std::min<uint64_t>(handle.operation_size, written.key.size());
  }
}

std::vector<CompressedBytes> MergeCompression::TakeCounts() { return std::exchange(counts_, {}); }

bool WantsCompression(const SegmentInfo& segment, const CompressionPolicy& policy) {
  const auto is_done = [&](NamespaceGeneration generation, const Compression& wanted) {
    return std::any_of(segment.compressed.begin(), segment.compressed.end(),
                       [&](const CompressedBytes& each) {
                         return each.generation == generation && each.compression == wanted;
                       });
  };
  return std::any_of(segment.live.entries().begin(), segment.live.entries().end(),
                     [&](const GenerationKeyCounts::Entry& entry) {
                       const Compression wanted = policy.Of(entry.generation);
                       return wanted.on() && !is_done(entry.generation, wanted);
                     });
}

absl::StatusOr<std::shared_ptr<const ValueDictionary>> ChooseMergeDictionary(
    const Version& version, const CompactionPlan& plan, const CompressionPolicy& policy) {
  if (!policy.any()) return nullptr;
  const Shares shares = SharesOf(plan, policy);
  if (shares.bytes == 0) return nullptr;
  VARVE_ASSIGN_OR_RETURN(Segment* const owner, OwnerOfPresentDictionary(version, shares));
  std::shared_ptr<const ValueDictionary> present;
  if (owner != nullptr) {
    VARVE_ASSIGN_OR_RETURN(present, owner->decoder().ShareDictionary());
  }
  ValueSamples samples;
  Sampler sampler(policy, &samples);
  uint64_t bytes = 0;
  for (const std::shared_ptr<Segment>& segment : shares.segments)
    bytes += segment->info().file_size;
  const uint64_t sampled = std::clamp(bytes / kSampledPart, kFewestSampled, kMostSampled);
  for (const std::shared_ptr<Segment>& segment : shares.segments) {
    const double part = static_cast<double>(segment->info().file_size) / static_cast<double>(bytes);
    VARVE_RETURN_IF_ERROR(
        sampler.Sample(segment.get(), static_cast<uint64_t>(part * static_cast<double>(sampled))));
  }
  return ChooseDictionary(samples, std::move(present), shares.level,
                          shares.bytes / kDictionaryPart);
}

}  // namespace varve
