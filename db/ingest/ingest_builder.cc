#include "db/ingest/ingest_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "db/format/file_names.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/file_writer.h"

namespace varve {
namespace {

// The sequences in the files. A reader never sees them.
constexpr SequenceNumber kTombstoneSequence = 1, kRecordSequence = 2;
constexpr uint64_t kMostKeysOfSegment = 1u << 20;
constexpr size_t kMostOfKeyShown = 64;

std::string Shown(std::string_view key) {
  const bool is_cut = key.size() > kMostOfKeyShown;
  return fmt::format("'{}'{}",
                     absl::Utf8SafeCEscape({key.data(), std::min(key.size(), kMostOfKeyShown)}),
                     is_cut ? "..." : "");
}

bool Holds(const IngestRange& range, std::string_view key) {
  return key >= range.begin && (range.end.empty() || key < range.end);
}

}  // namespace

IngestBuilder::~IngestBuilder() {
  builder_.reset();
  for (const SegmentInfo& segment : segments_) {
    if (!kept_) {
      TryWithMemory([&] {
        RemoveFile(options_.file_system, SegmentPath(options_.directory, segment.number));
      });
    }
    options_.files->Forget(segment.number);
  }
  options_.files->Forget(number_);
}

absl::Status IngestBuilder::Check(absl::Span<const IngestPair> pairs) const {
  const std::string_view* before = nullptr;
  const std::string_view last = last_key_;
  if (progress_.keys > 0) before = &last;
  for (const IngestPair& pair : pairs) {
    if (pair.key.size() > kMaxKeySize) {
      return absl::InvalidArgumentError(
          fmt::format("key of {} bytes: at most {} are allowed", pair.key.size(), kMaxKeySize));
    }
    if (pair.value.size() > kMaxValueSize) {
      return absl::InvalidArgumentError(fmt::format("value of {} bytes: at most {} are allowed",
                                                    pair.value.size(), kMaxValueSize));
    }
    if (before != nullptr && pair.key <= *before) {
      // Another user, who may not read the key before, may have added it.
      return absl::InvalidArgumentError(
          fmt::format("keys of an ingest must ascend, but {} does not come behind the key before "
                      "it; nothing was added",
                      Shown(pair.key)));
    }
    if (options_.replace && !Holds(*options_.replace, pair.key)) {
      return absl::InvalidArgumentError(
          fmt::format("key {} lies outside the range that the ingest replaces; nothing was added",
                      Shown(pair.key)));
    }
    before = &pair.key;
  }
  return absl::OkStatus();
}

absl::Status IngestBuilder::Add(absl::Span<const IngestPair> pairs) {
  if (!error_.ok()) return UnsharedCopy(error_);
  if (finished_)
    return absl::FailedPreconditionError("the ingest is being committed: nothing can be added");
  VARVE_RETURN_IF_ERROR(Check(pairs));
  for (const IngestPair& pair : pairs) {
    error_ = GuardMemory("adding to an ingest", [&] { return AddChecked(pair); });
    if (!error_.ok()) return UnsharedCopy(error_);
  }
  return absl::OkStatus();
}

absl::Status IngestBuilder::AddChecked(const IngestPair& pair) {
  const TreeKey key(options_.generation, pair.key);
  if (builder_ != nullptr && (builder_->file_size() >= options_.segment_size ||
                              builder_->entries() >= kMostKeysOfSegment)) {
    VARVE_RETURN_IF_ERROR(FinishSegment(std::string(key.view())));
  }
  if (builder_ == nullptr)
    VARVE_RETURN_IF_ERROR(BeginSegment(key.view(), pair.key.size() + pair.value.size()));
  RecordView record;
  record.key = key.view();
  record.value = pair.value;
  record.sequence = kRecordSequence;
  VARVE_RETURN_IF_ERROR(builder_->Add(record));
  live_.Add(options_.generation, CountsOf(record));
  if (progress_.keys == 0) first_key_.assign(pair.key);
  last_key_.assign(pair.key);
  ++progress_.keys;
  progress_.bytes += pair.key.size() + pair.value.size();
  return absl::OkStatus();
}

absl::Status IngestBuilder::BeginSegment(std::string_view tree_key, uint64_t record_size) {
  const uint64_t average =
      progress_.keys == 0 ? record_size : progress_.bytes / progress_.keys;  // so far
  number_ = options_.next_file_number();
  options_.files->Add(number_);
  // The builder gets no caches: an ingest that never commits would leave an index in them for ever.
  VARVE_ASSIGN_OR_RETURN(
      builder_, SegmentBuilder::Create(options_.file_system,
                                       {.directory = options_.directory,
                                        .number = number_,
                                        .block_size = SegmentBuilder::BlockSizeFor(average),
                                        .shares_keys = options_.shares_keys}));
  live_ = GenerationKeyCounts();
  if (!options_.replace) return absl::OkStatus();
  const bool is_first = segments_.empty();
  tombstone_begin_ = is_first
                         ? std::string(TreeKey(options_.generation, options_.replace->begin).view())
                         : std::string(tree_key);
  return absl::OkStatus();
}

absl::Status IngestBuilder::FinishSegment(const std::string& end) {
  VARVE_ASSERT(builder_ != nullptr && builder_->entries() > 0);
  if (options_.replace) {
    VARVE_RETURN_IF_ERROR(builder_->AddRangeTombstone({tombstone_begin_, end, kTombstoneSequence}));
  }
  VARVE_ASSIGN_OR_RETURN(SegmentInfo info, builder_->Finish());
  builder_.reset();
  info.live = std::move(live_);
  segments_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status IngestBuilder::Finish() {
  if (!error_.ok()) return UnsharedCopy(error_);
  finished_ = true;
  if (builder_ == nullptr) return absl::OkStatus();
  error_ = GuardMemory("finishing an ingest", [&] {
    const std::string to = options_.replace ? options_.replace->end : std::string();
    return FinishSegment(to.empty() ? EndTreeKey(options_.generation)
                                    : std::string(TreeKey(options_.generation, to).view()));
  });
  return UnsharedCopy(error_);
}

}  // namespace varve
