#include "tools/repair/repair_writer.h"

#include "type/tree_key.h"
#include "util/base/status.h"

namespace varve {

absl::Status RepairWriter::Open() {
  if (builder_ != nullptr) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(builder_, SegmentBuilder::Create(file_system_, options_));
  for (const RangeTombstone& tombstone : tombstones_.tombstones()) {
    VARVE_RETURN_IF_ERROR(builder_->AddRangeTombstone(tombstone));
  }
  return absl::OkStatus();
}

absl::Status RepairWriter::Add(const RecordView& record) {
  const bool is_newest = builder_ == nullptr || record.key != key_;
  VARVE_RETURN_IF_ERROR(Open());
  VARVE_RETURN_IF_ERROR(builder_->Add(record));
  if (is_newest && record.kind == RecordKind::kValue &&
      tombstones_.CoveringSequence(record.key, kMaxSequence) < record.sequence) {
    live_.Add(GenerationOf(record.key), CountsOf(record));
  }
  key_.assign(record.key);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SegmentInfo>> RepairWriter::Finish() {
  if (!tombstones_.empty()) VARVE_RETURN_IF_ERROR(Open());
  if (builder_ == nullptr) return std::nullopt;
  VARVE_ASSIGN_OR_RETURN(SegmentInfo info, builder_->Finish());
  info.live = std::move(live_);
  return info;
}

}  // namespace varve
