#include "db/compaction/merge_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/compaction/purge.h"
#include "db/compaction/value_separation.h"
#include "db/format/expiry_index.h"
#include "db/format/file_names.h"
#include "db/segment/segment_caches.h"
#include "util/base/assert.h"
#include "util/base/kept_buffer.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/file_writer.h"

namespace varve {
namespace {

constexpr uint64_t kRecordsBetweenRests = 16;
constexpr size_t kNoStripe = std::numeric_limits<size_t>::max();

// The stripes of sequences that readers can tell apart in one generation.
class Stripes {
 public:
  // Requires: all of them outlive the stripes, and the snapshots ascend.
  Stripes(const std::vector<SequenceNumber>& snapshots, const NamespaceForks& forks,
          const KeptVersions& kept)
      : held_(snapshots), kept_(kept) {
    VARVE_ASSERT(std::is_sorted(snapshots.begin(), snapshots.end()));
    for (const NamespaceFork& fork : forks.all()) {
      std::vector<SequenceNumber>& points =
          of_parents_.try_emplace(fork.parent, snapshots).first->second;
      const auto place = std::lower_bound(points.begin(), points.end(), fork.fork_point);
      if (place == points.end() || *place != fork.fork_point) points.insert(place, fork.fork_point);
    }
  }

  // From now on the stripes are those of `generation`.
  void Choose(NamespaceGeneration generation) {
    const auto of_parent = of_parents_.find(generation);
    snapshots_ = of_parent == of_parents_.end() ? &held_ : &of_parent->second;
    horizon_ = kept_.From(generation);
    if (horizon_ == kMaxSequence) return;
    is_held_above_ = !snapshots_->empty() && snapshots_->back() >= horizon_;
    // The horizon is the last of the snapshots; above it everything is told apart anyway.
    up_to_horizon_.assign(snapshots_->begin(),
                          std::lower_bound(snapshots_->begin(), snapshots_->end(), horizon_));
    up_to_horizon_.push_back(horizon_);
    snapshots_ = &up_to_horizon_;
  }
  // Versions with the same number of snapshots below them look the same to everybody.
  size_t Of(SequenceNumber sequence) const {
    if (snapshots_->empty()) return 0;
    if (sequence > horizon_) return snapshots_->size() + (sequence - horizon_ - 1);
    return static_cast<size_t>(std::lower_bound(snapshots_->begin(), snapshots_->end(), sequence) -
                               snapshots_->begin());
  }
  // Returns whether the versions of the stripe concern readers of the present alone. Of a
  // generation with a horizon, those that are at or below it do, as far as a filter goes, where no
  // snapshot and no clone is above it: what a filter drops was not meant to be kept.
  bool IsOfThePresent(size_t stripe) const {
    return horizon_ == kMaxSequence ? stripe == snapshots_->size()
                                    : stripe + 1 == snapshots_->size() && !is_held_above_;
  }
  // Returns the sequence above which all versions are kept; kMaxSequence: there is none.
  SequenceNumber horizon() const { return horizon_; }
  // Returns the sequence at which a reader of `stripe` reads.
  SequenceNumber ReadSequence(size_t stripe) const {
    if (stripe < snapshots_->size()) return (*snapshots_)[stripe];
    return horizon_ == kMaxSequence ? kMaxSequence : horizon_ + 1 + (stripe - snapshots_->size());
  }

 private:
  const std::vector<SequenceNumber>& held_;
  const KeptVersions& kept_;
  // The snapshots and fork points of each parent generation.
  std::map<NamespaceGeneration, std::vector<SequenceNumber>> of_parents_;
  std::vector<SequenceNumber> up_to_horizon_;
  const std::vector<SequenceNumber>* snapshots_ = &held_;
  SequenceNumber horizon_ = kMaxSequence;  // of the generation
  bool is_held_above_ = false;             // a snapshot or a clone sees it at the horizon or above
};

// The range tombstones that the outputs have to hold.
class KeptTombstones {
 public:
  void Add(RangeTombstone tombstone) { kept_.push_back(std::move(tombstone)); }
  // No Add() follows.
  void Sort() {
    std::sort(kept_.begin(), kept_.end(),
              [](const RangeTombstone& a, const RangeTombstone& b) { return a.begin < b.begin; });
  }

  // Returns what begins below `upper` (empty: no end), cut there; the rest is for later outputs.
  std::vector<RangeTombstone> TakeBelow(std::string_view upper) {
    std::vector<RangeTombstone> pieces;
    std::vector<RangeTombstone> open;
    const auto take = [&](RangeTombstone tombstone) {
      if (!upper.empty() && tombstone.end > upper) {
        open.push_back({std::string(upper), tombstone.end, tombstone.sequence});
        tombstone.end = upper;
      }
      pieces.push_back(std::move(tombstone));
    };
    const auto is_below = [&](const RangeTombstone& tombstone) {
      return upper.empty() || tombstone.begin < upper;
    };
    for (RangeTombstone& begun : open_)
      is_below(begun) ? take(std::move(begun)) : open.push_back(std::move(begun));
    for (; next_ < kept_.size() && is_below(kept_[next_]); ++next_) take(std::move(kept_[next_]));
    open_ = std::move(open);
    CoalesceRangeTombstones(&pieces);
    return pieces;
  }

 private:
  std::vector<RangeTombstone> kept_;  // ascending by their begins
  size_t next_ = 0;                   // those before it were taken
  std::vector<RangeTombstone> open_;  // what is left of those that an output cut
};

class SegmentMerge {
 public:
  SegmentMerge(InternalIterator* input, std::vector<RangeTombstone> tombstones,
               const MergeOptions& options)
      : input_(input),
        options_(options),
        tombstones_(std::move(tombstones)),
        stripes_(options.snapshots, options.forks, options.kept),
        compression_(options.compression) {
    KeepTombstones();
  }

  absl::StatusOr<MergeResult> Run() {
    if (absl::Status status = GuardMemory("writing a segment", [this] { return WriteAll(); });
        !status.ok()) {
      builder_.reset();
      for (const SegmentInfo& segment : result_.segments) {
        TryWithMemory([&] {
          RemoveFile(options_.file_system, SegmentPath(options_.directory, segment.number));
        });
      }
      return status;
    }
    return std::move(result_);
  }

 private:
  absl::Status WriteAll() {
    options_.lower.empty() ? input_->SeekToFirst() : input_->Seek(options_.lower, kMaxSequence);
    while (input_->Valid()) {
      if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
        return absl::AbortedError("merge: cancelled");
      }
      const RecordView& record = input_->record();
      if (++result_.records_read % kRecordsBetweenRests == 0 && options_.rest) options_.rest();
      if (record.key != key_ || result_.records_read == 1) {
        if (!options_.upper.empty() && record.key >= options_.upper) {
          --result_.records_read;
          break;
        }
        BeginKey(record.key);
      }
      if (!generation_is_live_) {
        const std::string end = EndTreeKey(generation_);
        if (end.empty()) break;
        input_->Seek(end, kMaxSequence);
        continue;
      }
      VARVE_RETURN_IF_ERROR(Consider(record));
      input_->Next();
    }
    VARVE_RETURN_IF_ERROR(input_->status());
    VARVE_RETURN_IF_ERROR(PassBoundaries({}));
    VARVE_RETURN_IF_ERROR(FinishOutput({}));
    return options_.separation != nullptr ? options_.separation->Finish() : absl::OkStatus();
  }

  bool IsLive(NamespaceGeneration generation) const {
    return !options_.is_live || options_.is_live(generation);
  }

  void BeginGeneration(NamespaceGeneration generation) {
    generation_ = generation;
    generation_is_live_ = IsLive(generation);
    generation_is_of_clone_ = options_.forks.Of(generation) != nullptr;
    stripes_.Choose(generation);
  }
  bool DropsTombstones() const { return options_.drops_tombstones && !generation_is_of_clone_; }

  void KeepTombstones() {
    for (size_t i = 0; i < tombstones_.size(); ++i) {
      const RangeTombstoneList::Fragment& fragment = tombstones_.fragments()[i];
      BeginGeneration(GenerationOf(fragment.begin));
      const std::string end = EndTreeKey(generation_);
      if ((end.empty() || fragment.end <= end) && !generation_is_live_) continue;
      SequenceNumber at = stripes_.horizon();  // KeepAboveHorizons() has kept those above it
      while (const SequenceNumber sequence = tombstones_.SequenceInFragment(i, at)) {
        const size_t stripe = stripes_.Of(sequence);
        if (stripe > 0 || !DropsTombstones()) {
          kept_tombstones_.Add({fragment.begin, fragment.end, sequence});
        }
        if (stripe == 0) break;
        at = stripes_.ReadSequence(stripe - 1);
      }
    }
    KeepAboveHorizons();
    kept_tombstones_.Sort();
  }

  // Above a horizon all are kept, as they are: cut at each other's ends they would be as many as
  // the square of their number.
  void KeepAboveHorizons() {
    for (const RangeTombstone& tombstone : tombstones_.tombstones()) {
      RangeTombstone rest = tombstone;
      while (rest.begin < rest.end) {
        BeginGeneration(GenerationOf(rest.begin));
        const std::string end = EndTreeKey(generation_);
        const bool crosses = !end.empty() && end < rest.end;
        if (generation_is_live_ && rest.sequence > stripes_.horizon())
          kept_tombstones_.Add({rest.begin, crosses ? end : rest.end, rest.sequence});
        if (!crosses) break;
        rest.begin = end;
      }
    }
  }

  void BeginKey(std::string_view key) {
    const NamespaceGeneration generation = GenerationOf(key);
    if (generation != generation_ || result_.records_read == 1) BeginGeneration(generation);
    key_.assign(key);
    // An entry of the expiry index is stale if nobody can see its key any more.
    is_stale_entry_ = false;
    if (generation == kExpiryGeneration) [[unlikely]] {
      const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(UserKeyOf(key));
      is_stale_entry_ = entry && !IsLive(GenerationOf(entry->tree_key));
    }
    key_is_purged_ = options_.purged != nullptr && options_.purged->Names(key);
    key_is_written_ = false;
    stripe_ = kNoStripe;
    const std::vector<RangeTombstoneList::Fragment>& fragments = tombstones_.fragments();
    while (fragment_ < fragments.size() && fragments[fragment_].end <= key) ++fragment_;
    key_is_in_fragment_ = fragment_ < fragments.size() && fragments[fragment_].begin <= key;
  }

  // Writes the record if somebody can still see it.
  absl::Status Consider(const RecordView& record) {
    if (is_stale_entry_) return absl::OkStatus();
    if (key_is_purged_ && record.sequence <= options_.purged->up_to) {
      ++result_.records_purged;
      return absl::OkStatus();
    }
    const size_t stripe = stripes_.Of(record.sequence);
    // Hidden by a newer version, also if that one was dropped.
    if (stripe == stripe_) return absl::OkStatus();
    const bool is_newest = stripe_ == kNoStripe;
    stripe_ = stripe;
    if (key_is_in_fragment_ && tombstones_.SequenceInFragment(
                                   fragment_, stripes_.ReadSequence(stripe)) > record.sequence) {
      return absl::OkStatus();
    }
    bool is_tombstone = record.kind == RecordKind::kTombstone;
    bool is_filtered = false;
    if (!is_tombstone && options_.filter != nullptr && generation_ != kExpiryGeneration &&
        is_newest && stripes_.IsOfThePresent(stripe)) {
      VARVE_ASSIGN_OR_RETURN(is_filtered, FilterDrops(record));
    }
    is_tombstone |= is_filtered;
    result_.filtered |= is_filtered;
    if (is_tombstone && DropsTombstones() && stripe == 0) return absl::OkStatus();
    if (!is_filtered) {
      VARVE_RETURN_IF_ERROR(Write(record));
      if (is_newest && !is_tombstone && !IsHidden(record)) live_.Add(generation_, CountsOf(record));
      return absl::OkStatus();
    }
    RecordView tombstone;
    tombstone.key = record.key;
    tombstone.sequence = record.sequence;
    tombstone.kind = RecordKind::kTombstone;
    return Write(tombstone);
  }

  static FilteredRecord AsFiltered(const RecordView& record) {
    return {.key = UserKeyOf(record.key),
            .value = record.value,
            .metadata = record.metadata,
            .version = record.sequence,
            .expiry_ms = record.expiry_ms};
  }

  // Shows the filter the record as its user wrote it.
  absl::StatusOr<bool> FilterDrops(const RecordView& record) {
    const absl::Cleanup give_back = [this] { GiveBackIfLarge(&value_); };
    ValueHandle handle;
    if (!IsSeparated(record) || !DecodeValueHandle(record.value, &handle)) {
      RecordView plain = record;
      VARVE_ASSIGN_OR_RETURN(plain.value, PlainValueOf(record, &value_));
      return options_.filter->Drop(AsFiltered(plain));
    }
    const std::shared_ptr<ValueFile> file = options_.caches->values.Find(handle.file_number);
    if (file == nullptr)
      return absl::InternalError("a value file is gone that a segment points into");
    RecordView whole;
    const absl::Status read =
        file->ReadOperation(handle, UserKeyOf(record.key), record.sequence, &value_, &whole);
    // Nobody can tell whether the filter would drop what can't be read. The file has logged it, and
    // the merge copies the place of the value, for which it need not be read.
    if (absl::IsDataLoss(read) || absl::IsInternal(read)) return false;
    VARVE_RETURN_IF_ERROR(read);
    whole.key = record.key;
    whole.sequence = record.sequence;
    return options_.filter->Drop(AsFiltered(whole));
  }

  // Returns whether a range tombstone of the inputs hides the record from readers of the present.
  bool IsHidden(const RecordView& record) const {
    return key_is_in_fragment_ &&
           tombstones_.SequenceInFragment(fragment_, kMaxSequence) > record.sequence;
  }

  absl::Status Write(const RecordView& record) {
    VARVE_ASSERT(generation_is_live_ && !is_stale_entry_);
    if (!key_is_written_) {
      key_is_written_ = true;
      VARVE_RETURN_IF_ERROR(PassBoundaries(record.key));
      if (builder_ != nullptr && builder_->file_size() >= options_.segment_size) {
        VARVE_RETURN_IF_ERROR(FinishOutput(record.key));
      }
    }
    if (builder_ == nullptr) VARVE_RETURN_IF_ERROR(OpenOutput());
    ++result_.records_written;
    CountBytes(record);
    of_clones_ |= generation_is_of_clone_;
    RecordView written = record;
    if (options_.separation != nullptr) {
      VARVE_ASSIGN_OR_RETURN(written, options_.separation->Separate(record));
    }
    VARVE_ASSIGN_OR_RETURN(written, compression_.Encode(written));
    compression_.Count(written);
    return builder_->Add(written);
  }

  void CountBytes(const RecordView& record) {
    auto& written = result_.written;
    if (written.empty() || written.back().first != generation_)
      written.emplace_back(generation_, 0);
    written.back().second +=
        UserKeyOf(record.key).size() + ValueSizeOf(record) + record.metadata.size();
  }

  absl::Status OpenOutput() {
    VARVE_ASSERT(builder_ == nullptr);
    if (options_.hurry) options_.hurry();
    SegmentBuilder::Options builder_options;
    builder_options.directory = options_.directory;
    builder_options.number = options_.next_file_number();
    const uint64_t record_size = std::max<uint64_t>(options_.average_record_size, 1);
    if (options_.average_record_size > 0)
      builder_options.block_size = SegmentBuilder::BlockSizeFor(record_size);
    builder_options.expected_entries =
        std::min(options_.expected_entries, options_.segment_size / record_size + 1);
    builder_options.spares = options_.spares;
    const uint64_t bytes = builder_options.expected_entries * record_size;
    builder_options.expected_size = bytes - std::min(bytes, options_.bytes_elsewhere);
    builder_options.caches = options_.caches;
    builder_options.dictionary = options_.compression.dictionary;
    builder_options.shares_keys = options_.shares_keys;
    builder_options.hurry = options_.hurry;
    VARVE_ASSIGN_OR_RETURN(builder_, SegmentBuilder::Create(options_.file_system, builder_options));
    return absl::OkStatus();
  }

  // Ends outputs at the boundaries up to `key`; empty: all of them.
  absl::Status PassBoundaries(std::string_view key) {
    for (; next_boundary_ < options_.boundaries.size(); ++next_boundary_) {
      const std::string& boundary = options_.boundaries[next_boundary_];
      if (!key.empty() && key < boundary) break;
      VARVE_RETURN_IF_ERROR(FinishOutput(boundary));
    }
    return absl::OkStatus();
  }

  // Ends the current output, which holds everything below `upper` (empty: no end), range tombstones
  // included.
  absl::Status FinishOutput(std::string_view upper) {
    const std::vector<RangeTombstone> pieces = kept_tombstones_.TakeBelow(upper);
    if (builder_ == nullptr && pieces.empty()) return absl::OkStatus();
    if (builder_ == nullptr) VARVE_RETURN_IF_ERROR(OpenOutput());
    for (const RangeTombstone& piece : pieces) {
      VARVE_RETURN_IF_ERROR(builder_->AddRangeTombstone(piece));
      of_clones_ |= options_.forks.Of(GenerationOf(piece.begin)) != nullptr;
    }
    VARVE_ASSIGN_OR_RETURN(SegmentInfo info, builder_->Finish());
    info.live = std::exchange(live_, {});
    info.compressed = compression_.TakeCounts();
    info.of_clones = std::exchange(of_clones_, false);
    result_.segments.push_back(std::move(info));
    builder_.reset();
    return absl::OkStatus();
  }

  InternalIterator* const input_;
  const MergeOptions& options_;
  const RangeTombstoneList tombstones_;  // of the inputs
  KeptTombstones kept_tombstones_;
  size_t next_boundary_ = 0;

  // The key at hand.
  std::string key_;
  NamespaceGeneration generation_ = 0;
  bool generation_is_live_ = true;
  bool generation_is_of_clone_ = false;
  Stripes stripes_;  // of its generation
  bool is_stale_entry_ = false;
  bool key_is_purged_ = false;
  bool key_is_written_ = false;
  size_t stripe_ = kNoStripe;  // of the version seen last
  std::string value_;          // of a record that the filter is shown
  size_t fragment_ = 0;        // the first one that ends behind the key
  bool key_is_in_fragment_ = false;

  std::unique_ptr<SegmentBuilder> builder_;
  MergeCompression compression_;
  GenerationKeyCounts live_;  // in the output at hand
  bool of_clones_ = false;    // the same
  MergeResult result_;
};

}  // namespace

absl::StatusOr<MergeResult> MergeToSegments(InternalIterator* input,
                                            std::vector<RangeTombstone> tombstones,
                                            const MergeOptions& options) {
  return SegmentMerge(input, std::move(tombstones), options).Run();
}

}  // namespace varve
