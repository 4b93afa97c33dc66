// RepairJob: segments of which not everything can be read are written anew.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_values.h"
#include "tools/repair/repair_job.h"
#include "tools/repair/repair_writer.h"
#include "tools/segment_verifier.h"
#include "type/tree_key.h"
#include "util/base/status.h"

namespace varve {
namespace {

// `"a" to "b"`, for people.
std::string ShownRange(std::string_view after, std::string_view before) {
  const auto shown = [](std::string_view tree_key, std::string_view none) {
    if (tree_key.size() < kGenerationSize) return std::string(none);
    const std::string_view key = UserKeyOf(tree_key).substr(0, 60);
    return fmt::format("\"{}\"", absl::CHexEscape(absl::string_view(key.data(), key.size())));
  };
  return fmt::format("between {} and {}", shown(after, "its first key"),
                     shown(before, "its last key"));
}

// File and offset.
using PlaceOfValue = std::pair<uint64_t, uint64_t>;

// What a lost record said, as its value tells.
struct RescuedRecord {
  std::string key;
  std::string metadata;
  std::string handle;  // of the value, encoded
  RecordView rest;

  RecordView View() const {
    RecordView record = rest;
    record.key = key;
    record.metadata = metadata;
    record.value = handle;
    return record;
  }
};

// The offset table leads to values past their records. One to which no record leads that can be
// read is that of a lost one; the operation that holds it has all that the record had. `read`: the
// places in records that can be read.
absl::StatusOr<std::vector<RescuedRecord>> RescueThroughValues(const SurveyedSegment& survey,
                                                               std::vector<PlaceOfValue> read,
                                                               ValueChecker* values) {
  std::vector<RescuedRecord> rescued;
  std::sort(read.begin(), read.end());
  for (const uint64_t address : survey.value_addresses) {
    const auto [file_index, offset] = ValueAt(address);
    if (file_index >= survey.footer->info.value_files.size()) continue;
    const uint64_t file = survey.footer->info.value_files[file_index].file_number;
    if (std::binary_search(read.begin(), read.end(), PlaceOfValue(file, offset))) continue;
    VARVE_ASSIGN_OR_RETURN(const std::optional<RecordView> operation,
                           values->OperationAt(file, offset));
    if (!operation) continue;
    RescuedRecord& record = rescued.emplace_back();
    record.key = operation->key;
    record.metadata = operation->metadata;
    AppendValueHandle({file, offset, static_cast<uint32_t>(LargeOperationSizeOf(*operation)),
                       static_cast<uint32_t>(ValueSizeOf(*operation))},
                      &record.handle);
    record.rest = *operation;
    record.rest.flags |= kSeparatedValue;
  }
  std::sort(rescued.begin(), rescued.end(), [](const RescuedRecord& a, const RescuedRecord& b) {
    return CompareInternal(a.key, a.rest.sequence, b.key, b.rest.sequence) < 0;
  });
  return rescued;
}

// Gives the records of a survey their plain values, and counts those that can't be decompressed.
class PlainRecords {
 public:
  explicit PlainRecords(std::shared_ptr<const ValueDictionary> dictionary)
      : dictionary_(std::move(dictionary)) {}

  // Returns false if the record's value can't be decompressed. The value is valid until the next
  // call.
  bool Decompress(uint64_t offset, RecordView* record) {
    if (!IsCompressed(*record) || IsSeparated(*record)) return true;
    const std::optional<std::string_view> plain =
        PlainValueWith(dictionary_.get(), *record, &buffer_);
    if (!plain) {
      if (lost_++ == 0) first_lost_ = offset;
      return false;
    }
    record->value = *plain;
    record->flags &= static_cast<uint8_t>(~kCompressed);
    return true;
  }
  uint64_t lost() const { return lost_; }
  uint64_t first_lost() const { return first_lost_; }  // its offset

 private:
  const std::shared_ptr<const ValueDictionary> dictionary_;
  std::string buffer_;
  uint64_t lost_ = 0;
  uint64_t first_lost_ = 0;
};

std::string GoOnAs(const std::string& name, uint64_t records, size_t ranges, size_t rescued) {
  return fmt::format("{} records and {} deleted ranges go on as {}{}", records, ranges, name,
                     rescued == 0
                         ? ""
                         : fmt::format("; {} of the lost ones among them, found through their "
                                       "values",
                                       rescued));
}

}  // namespace

absl::Status RepairJob::RepairRun(SegmentInfos* run) {
  SegmentInfos repaired;
  for (SegmentInfo& info : *run) {
    const std::string name = NameOf(info.number);
    if (!HasFile(name)) {
      records_are_lost_ = true;
      Lost(name, 0,
           fmt::format("missing, with {} records and {} deleted ranges {}; {}", info.entries,
                       info.range_tombstones, ShownRange(info.smallest, info.largest),
                       kOlderMayBeBack));
      continue;
    }
    absl::Status whole = VerifySegment(file_system_, SegmentPath(directory_, info.number), info);
    if (whole.ok()) whole = values_.CheckSegment(info);
    Done(info.file_size);
    if (whole.ok()) {
      repaired.push_back(std::move(info));
      continue;
    }
    if (!absl::IsDataLoss(whole)) return whole;
    const size_t listed = report_.lost.size();
    VARVE_ASSIGN_OR_RETURN(std::optional<SegmentInfo> salvaged,
                           Salvage(info.number, info.file_size, &info));
    if (report_.lost.size() == listed) Lost(whole, "it is written anew");
    Move(name);
    if (salvaged) repaired.push_back(*std::move(salvaged));
  }
  *run = std::move(repaired);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SegmentInfo>> RepairJob::Salvage(uint64_t number, uint64_t file_size,
                                                              const SegmentInfo* named) {
  records_are_lost_ = true;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForRead(SegmentPath(directory_, number)));
  uint64_t bytes = 0;
  std::vector<PlaceOfValue> places;
  const auto look = [&](uint64_t, uint64_t size, const RecordView& record) {
    bytes += size;
    ValueHandle handle;
    if (IsSeparated(record) && DecodeValueHandle(record.value, &handle)) {
      places.emplace_back(handle.file_number, handle.offset);
    }
    return absl::OkStatus();
  };
  const std::string_view first_key = named == nullptr ? "" : FirstKeyOf(*named);
  VARVE_ASSIGN_OR_RETURN(const SurveyedSegment survey,
                         SurveySegment(*file, number, file_size, look, first_key));
  ListDamage(NameOf(number), survey, named);
  VARVE_ASSIGN_OR_RETURN(const std::vector<RescuedRecord> rescued,
                         RescueThroughValues(survey, std::move(places), &values_));
  const uint64_t new_number = NewNumber();
  RepairWriter writer(file_system_, directory_, new_number,
                      survey.records == 0 ? 0 : bytes / survey.records, survey.range_tombstones);
  auto next = rescued.begin();
  PlainRecords plain(survey.dictionary);
  const auto add = [&](uint64_t offset, uint64_t, RecordView record) -> absl::Status {
    for (; next != rescued.end(); ++next) {
      if (CompareInternal(next->key, next->rest.sequence, record.key, record.sequence) > 0) break;
      VARVE_RETURN_IF_ERROR(writer.Add(next->View()));
    }
    if (!plain.Decompress(offset, &record)) return absl::OkStatus();
    const absl::Status value = values_.Check(record);
    if (value.ok()) return writer.Add(record);
    if (!absl::IsDataLoss(value)) return value;
    const std::string_view key = UserKeyOf(record.key).substr(0, 60);
    Lost(value,
         fmt::format("the value of \"{}\"; {}",
                     absl::CHexEscape(absl::string_view(key.data(), key.size())), kOlderMayBeBack));
    return absl::OkStatus();
  };
  VARVE_RETURN_IF_ERROR(SurveySegment(*file, number, file_size, add, first_key).status());
  for (; next != rescued.end(); ++next) VARVE_RETURN_IF_ERROR(writer.Add(next->View()));
  if (plain.lost() > 0) {
    Lost(NameOf(number), plain.first_lost(),
         fmt::format("{} values that can't be decompressed, from here on; {}", plain.lost(),
                     kOlderMayBeBack));
  }
  VARVE_ASSIGN_OR_RETURN(std::optional<SegmentInfo> info, writer.Finish());
  if (info) {
    info->of_clones = named != nullptr && named->of_clones;
    Saved(NameOf(number), GoOnAs(NameOf(new_number), survey.records - plain.lost() + rescued.size(),
                                 survey.range_tombstones.size(), rescued.size()));
  }
  return info;
}

void RepairJob::ListDamage(const std::string& name, const SurveyedSegment& survey,
                           const SegmentInfo* named) {
  for (const absl::Status& damage : survey.damage) {
    const uint64_t offset = PlaceOf(damage).offset;
    const auto gap = std::find_if(
        survey.gaps.begin(), survey.gaps.end(),
        [&](const SurveyedSegment::Gap& candidate) { return candidate.begin == offset; });
    if (gap == survey.gaps.end()) {
      Lost(damage);
    } else {
      Lost(damage, fmt::format("{} bytes of records {}; {}", gap->end - gap->begin,
                               ShownRange(gap->after, gap->before), kOlderMayBeBack));
    }
  }
  // Without a footer only the manifest tells how many there were.
  const bool is_listed = survey.footer && !survey.gaps.empty();
  if (named != nullptr && survey.records < named->entries && !is_listed) {
    Lost(name, survey.data_end,
         fmt::format("{} of its {} records are lost, with keys {}; {}",
                     named->entries - survey.records, named->entries,
                     ShownRange(named->smallest, named->largest), kOlderMayBeBack));
  }
  if (survey.range_tombstones_are_lost && (named == nullptr || named->range_tombstones > 0)) {
    Lost(name, survey.footer ? survey.footer->range_tombstones_offset : survey.data_end,
         named == nullptr
             ? "deleted ranges, if it had any, are lost: keys that they deleted are back"
             : fmt::format("{} deleted ranges {} are lost: keys that they deleted are back",
                           named->range_tombstones, ShownRange(named->smallest, named->largest)));
  }
}

}  // namespace varve
