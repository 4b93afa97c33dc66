// One run of a repair (tools/repair/repair.h), from the first look at the files to the plan that is
// carried out. Its functions are in four files: repair.cc (the whole, and the log),
// repair_segments.cc, repair_expiry.cc, repair_manifest.cc.
//
// Thread-safety: one thread uses a job.
// Requires: no server has the store open; Run() takes the store's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/file_names.h"
#include "db/log/log_recovery.h"
#include "db/segment/segment.h"
#include "db/version/store_files.h"
#include "fmt/format.h"
#include "tools/repair/repair.h"
#include "tools/repair/repair_plan.h"
#include "tools/segment_survey.h"
#include "tools/value_check.h"

namespace varve {

struct SegmentCaches;
class WriteBuffer;

class RepairJob {
 public:
  RepairJob(FileSystem* file_system, const std::string& directory, const VerifyProgress& progress)
      : file_system_(file_system), directory_(directory), progress_(progress) {}

  absl::StatusOr<RepairReport> Run();

 private:
  using SegmentInfos = std::vector<SegmentInfo>;
  static constexpr std::string_view kOlderMayBeBack =
      "where a lost one deleted or replaced a key, an older value may be back";

  absl::StatusOr<RepairReport> Finish();
  absl::Status Examine();

  void Lost(std::string file, uint64_t offset, std::string what) {
    report_.lost.push_back({std::move(file), offset, std::move(what)});
  }
  void Lost(const absl::Status& status, std::string_view more = {}) {
    const DamagedPlace place = PlaceOf(status);
    Lost(place.file, place.offset,
         more.empty() ? place.what : fmt::format("{}; {}", place.what, more));
  }
  void Saved(std::string file, std::string what) {
    report_.saved.push_back({std::move(file), 0, std::move(what)});
  }
  void Move(const std::string& name) {
    if (!HasFile(name)) return;
    plan_.moves.emplace_back(name, NameInDamaged(name, names_in_damaged_));
    names_in_damaged_.push_back(plan_.moves.back().second);
  }
  bool HasFile(std::string_view name) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const StoreFile& file) { return file.name == name; });
  }
  uint64_t NewNumber() { return plan_.manifest.next_file_number++; }
  static std::string NameOf(uint64_t number) { return SegmentPath("", number).substr(1); }
  void Done(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }
  uint64_t NumberBehindAllFiles() const;
  // Does without a time file that is damaged.
  absl::Status RepairTimes();
  absl::Status RepairChanges();
  // Log files that are moved and that segments point into become value files instead; value files
  // into which no segment points any more are moved.
  void PlaceFilesWithValues();

  // --- Manifest
  absl::StatusOr<bool> TakeManifest();
  bool AllSegmentsAreThere(const Manifest& manifest) const;
  absl::Status RebuildManifest();
  absl::Status RemoveOwnSegments();
  // Returns the highest generation of a namespace that the segment holds something of, or
  // kNoGeneration.
  static absl::StatusOr<NamespaceGeneration> HighestGenerationIn(Segment* segment);
  absl::StatusOr<std::vector<std::shared_ptr<Segment>>> OpenForMerge(SegmentCaches* caches,
                                                                     std::set<uint64_t>* made);
  uint64_t StoreIdOfLogs() const;
  // Notes which namespaces there were, given the highest generation that was found.
  void TakeNamespaces(NamespaceGeneration highest);
  // Gives generations that no namespace has a namespace of their own.
  void NameOtherGenerations();
  // Makes one run of the segments, which is the whole tree, and removes those in `made`.
  absl::Status MergeInto(const std::vector<std::shared_ptr<Segment>>& segments,
                         const std::set<uint64_t>& made);

  // --- Segments
  absl::Status RepairRun(SegmentInfos* run);
  // Lists the damage; returns what takes the segment's place, if anything is left of it. `named` is
  // what the manifest says of it, or null.
  absl::StatusOr<std::optional<SegmentInfo>> Salvage(uint64_t number, uint64_t file_size,
                                                     const SegmentInfo* named);
  void ListDamage(const std::string& name, const SurveyedSegment& survey, const SegmentInfo* named);

  // --- Log
  absl::Status RepairLog();
  // Lists what is lost in the gaps, and returns the last sequence that may be lost.
  SequenceNumber ListGaps(const std::vector<LogGap>& gaps);
  // Puts the operations into a new segment, the newest run of the tree; adds its name to `made`.
  absl::Status WriteSalvaged(const WriteBuffer& buffer, std::vector<std::string>* made);
  absl::Status ReplaceLog(const std::vector<LogGap>& gaps);

  // --- Expiry
  absl::Status RebuildExpiryIndex();

  // --- History
  // Records are lost: what readers of old versions would miss, they are not to read at all.
  void ForgetHistory();

  FileSystem* const file_system_;
  const std::string& directory_;
  const VerifyProgress& progress_;
  std::vector<StoreFile> files_;
  ValueChecker values_{file_system_, directory_};
  std::vector<std::string> names_in_damaged_;
  RepairPlan plan_;
  RepairReport report_;
  bool is_rebuilt_ = false;                        // without any manifest
  bool knows_namespaces_ = true;                   // else which generation is whose was guessed
  std::optional<Manifest> outdated_;               // then a copy whose segments are gone
  bool records_are_lost_ = false;                  // or may be
  SequenceNumber last_in_segments_ = kNoSequence;  // then the highest sequence in them
  SequenceNumber last_in_log_ = kNoSequence;       // of what can be read there
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace varve
