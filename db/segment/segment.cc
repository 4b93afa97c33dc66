#include "db/segment/segment.h"

#include <fmt/format.h>

#include <algorithm>

#include "db/format/file_names.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_iterator.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/disk_wait.h"
#include "util/os/file_remover.h"

namespace varve {
namespace {

// Returns after how many page reads the whole index is worth reading: sequential pages cost about
// an eighth of single ones.
uint64_t TouchesBeforeLoad(const SegmentFooter& footer) { return 2 + footer.table_pages / 8; }

// Reads twice where the device fails: the segment takes what it cannot read for damaged until the
// next start, and a second read may succeed.
template <typename Read>
auto ReadTwice(const Read& read) {
  auto result = read();
  if (absl::IsInternal(result.status())) result = read();
  return result;
}

// The blocks whose fences lie within a range.
struct FenceRange {
  size_t begin = 0;
  size_t end = 0;
};

FenceRange FencesWithin(const SegmentFences& fences, std::string_view lower,
                        std::string_view upper) {
  if (fences.count() == 0) return {};
  const auto first_at_or_behind = [&](std::string_view key) {
    const size_t block = fences.Find(key);
    return fences.Key(block) < key ? block + 1 : block;
  };
  // The first fence has no key.
  FenceRange range{std::max<size_t>(first_at_or_behind(lower), 1), fences.count()};
  if (!upper.empty()) range.end = first_at_or_behind(upper);
  range.end = std::max(range.begin, range.end);
  return range;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Segment>> Segment::Open(FileSystem* file_system,
                                                       const std::string& directory,
                                                       const SegmentInfo& info,
                                                       SegmentCaches* caches, DamagePolicy policy) {
  VARVE_ASSIGN_OR_RETURN(auto file, file_system->OpenForRead(SegmentPath(directory, info.number)));
  auto segment = std::make_shared<Segment>(std::move(file), info, caches);
  segment->HoldValueFiles(file_system, directory);
  VARVE_RETURN_IF_ERROR(segment->Initialize(policy));
  return segment;
}

Segment::Segment(std::unique_ptr<File> file, SegmentInfo info, SegmentCaches* caches)
    : file_(std::move(file)),
      info_(std::move(info)),
      caches_(caches),
      decoder_(this, caches == nullptr ? nullptr : &caches->tables) {}

void Segment::HoldValueFiles(FileSystem* file_system, const std::string& directory) {
  for (const ValueReference& file : info_.value_files) {
    value_files_.push_back(caches_->values.Acquire(file_system, directory, file.file_number));
    value_files_by_number_.push_back(value_files_.back().get());
  }
  VARVE_ASSERT(value_files_.size() == info_.value_files.size());
  std::sort(value_files_by_number_.begin(), value_files_by_number_.end(),
            [](const ValueFile* a, const ValueFile* b) { return a->number() < b->number(); });
}

Segment::~Segment() {
  if (file_ == nullptr) return;  // a test's stand-in
  caches_->tables.Erase(&resident_);
  FileRemover* const remover = remover_.load(std::memory_order_relaxed);
  if (remover == nullptr) return;
  remover->Remove(file_->path(),
                  is_damaged() ? FileRemover::Reuse::kNever : FileRemover::Reuse::kAllowed);
}

absl::Status Segment::Initialize(DamagePolicy policy) {
  if (auto index = caches_->tables.Collect(info_.number); index != nullptr) {
    absl::MutexLock lock(&load_mutex_);
    VARVE_ASSERT(footer_owner_ == nullptr);
    footer_owner_ = std::make_unique<const SegmentFooter>(index->footer());
    footer_.store(footer_owner_.get(), std::memory_order_release);
    caches_->tables.Insert(&resident_, std::move(index));
  }
  if (footer_.load(std::memory_order_relaxed) != nullptr) decoder_.LoadDictionary();
  if (info_.range_tombstones == 0) return absl::OkStatus();
  const auto read = [&]() -> absl::StatusOr<std::vector<RangeTombstone>> {
    VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
    return ReadSegmentRangeTombstones(*file_, *footer);
  };
  absl::StatusOr<std::vector<RangeTombstone>> tombstones = ReadTwice(read);
  if (tombstones.ok()) {
    if (info_.ingested_at != kNoSequence) {
      for (RangeTombstone& tombstone : *tombstones) tombstone.sequence = info_.ingested_at - 1;
    }
    range_tombstones_ = std::make_shared<const RangeTombstoneList>(*std::move(tombstones));
    return absl::OkStatus();
  }
  // A lack of memory or of descriptors says nothing about what is on disk.
  const bool is_damage =
      absl::IsDataLoss(tombstones.status()) || absl::IsInternal(tombstones.status());
  if (policy == DamagePolicy::kRefuse || !is_damage) return tombstones.status();
  range_tombstone_status_ = Report(UnsharedCopy(tombstones.status()));
  NoteDamage();
  return absl::OkStatus();
}

absl::Status Segment::Report(absl::Status error) {
  // Other errors say nothing about what is on disk.
  if (!absl::IsDataLoss(error) && !absl::IsInternal(error)) return error;
  constexpr size_t kMostReports = 64;  // of one segment: where everything is damaged, these will do
  absl::MutexLock lock(&report_mutex_);
  const std::string_view message(error.message().data(), error.message().size());
  if (reported_.size() < kMostReports &&
      std::find(reported_.begin(), reported_.end(), message) == reported_.end()) {
    reported_.emplace_back(message);
    spdlog::error("{}; other keys stay readable", message);
  }
  return error;
}

absl::StatusOr<const SegmentFooter*> Segment::Footer() {
  if (const SegmentFooter* footer = footer_.load(std::memory_order_acquire); footer != nullptr)
    return footer;
  const DiskWait wait;  // for a thread that reads under the lock, too
  absl::MutexLock lock(&load_mutex_);
  if (footer_owner_ == nullptr) {
    uint64_t reads = 0;
    absl::StatusOr<SegmentFooter> footer =
        ReadTwice([&] { return ReadSegmentFooter(*file_, info_.number, info_.file_size, &reads); });
    caches_->statistics.table_loads.Add(reads);
    if (!footer.ok()) NoteDamage();
    VARVE_RETURN_IF_ERROR(footer.status());
    footer_owner_ = std::make_unique<const SegmentFooter>(*std::move(footer));
    footer_.store(footer_owner_.get(), std::memory_order_release);
  }
  return footer_owner_.get();
}

OffsetTableView::Only Segment::LookInTable(uint64_t hash, OffsetTableEntry* entry) const {
  if (loaded_footer() == nullptr || !range_tombstone_status_.ok())
    return OffsetTableView::Only::kSeveral;
  const ResidentIndex::Pin pin(resident_);
  return pin ? pin->table().LookupOnly(hash, entry) : OffsetTableView::Only::kSeveral;
}

double Segment::ShareBefore(std::string_view tree_key) const {
  if (tree_key <= info_.smallest) return 0;
  if (!ReachesTo(info_, tree_key)) return 1;
  const ResidentIndex::Pin pin(resident_);
  return pin ? pin->fences().ShareBefore(tree_key, info_.largest)
             : ShareBetween(info_.smallest, tree_key, info_.largest);
}

size_t Segment::FencesBetween(std::string_view lower, std::string_view upper) const {
  const ResidentIndex::Pin pin(resident_);
  if (!pin) return 0;
  const FenceRange range = FencesWithin(pin->fences(), lower, upper);
  return range.end - range.begin;
}

void Segment::VisitFences(std::string_view lower, std::string_view upper, size_t stride,
                          absl::FunctionRef<void(std::string_view)> visit) const {
  VARVE_ASSERT(stride > 0);
  const ResidentIndex::Pin pin(resident_);
  if (!pin) return;
  const FenceRange range = FencesWithin(pin->fences(), lower, upper);
  for (size_t i = range.begin; i < range.end; i += stride) visit(pin->fences().Key(i));
}

absl::Status Segment::ProbePage(const SegmentFooter& footer, uint64_t hash,
                                OffsetTableCandidates* candidates) {
  VARVE_ASSERT(footer.table_pages > 0);
  const OffsetTablePlace place = OffsetTablePlace::Of(hash, footer.table_pages);
  const uint64_t offset = footer.table_offset + uint64_t{place.page} * kOffsetTablePageSize;
  alignas(64) char page[kOffsetTablePageSize];
  VARVE_RETURN_IF_ERROR(ReadExactly(offset, sizeof(page), page));
  caches_->statistics.table_page_reads.Add(1);
  if (!OffsetTablePageIsIntact({page, sizeof(page)}, info_.number, place.page)) {
    return Corruption(file_->path(), offset, "segment offset table: wrong checksum of a page");
  }
  LookupInOffsetTablePage(page, place, hash, footer.overflow, candidates);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const SegmentIndex>> Segment::LoadIndex(
    const SegmentFooter& footer) {
  load_mutex_.AssertHeld();
  if (auto index = resident_.Share(); index != nullptr) return index;
  caches_->statistics.table_loads.Add(1);
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> index = SegmentIndex::Load(*file_, footer);
  if (absl::IsDataLoss(index.status())) index_is_damaged_.store(true, std::memory_order_relaxed);
  VARVE_RETURN_IF_ERROR(index.status());
  touches_.store(0, std::memory_order_relaxed);
  decoder_.LoadDictionary();
  caches_->tables.Insert(&resident_, *index);
  return index;
}

bool Segment::IndexIsLoadable(const SegmentFooter& footer) const {
  return !index_is_damaged_.load(std::memory_order_relaxed) &&
         caches_->tables.Fits(footer.index_size() +
                              footer.overflow.size() * sizeof(OffsetTableOverflow) +
                              sizeof(SegmentIndex));
}

void Segment::MaybeLoadIndex(const SegmentFooter& footer, uint64_t touches) {
  if (touches < TouchesBeforeLoad(footer) || !IndexIsLoadable(footer)) return;
  // While another thread loads the index, this one goes on reading page by page.
  if (!load_mutex_.TryLock()) return;
  // Where this thread can't read the whole index, single pages may still be good: readers report
  // the errors of those that they need.
  const DiskWait wait;
  TryWithMemory([&] {
    load_mutex_.AssertHeld();
    (void)LoadIndex(footer).ok();
  });
  load_mutex_.Unlock();
}

absl::Status Segment::FindCandidates(uint64_t hash, OffsetTableCandidates* candidates) {
  const auto probe_resident = [&] {
    const ResidentIndex::Pin pin(resident_);
    if (pin) pin->table().Lookup(hash, candidates);
    return bool(pin);
  };
  if (probe_resident()) [[likely]]
    return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  if (footer->table_pages == 0) return absl::OkStatus();
  const uint64_t touches = touches_.fetch_add(1, std::memory_order_relaxed) + 1;
  MaybeLoadIndex(*footer, touches);
  if (probe_resident()) return absl::OkStatus();
  return ProbePage(*footer, hash, candidates);
}

absl::StatusOr<std::shared_ptr<const SegmentFences>> Segment::Fences() {
  const auto fences_of = [](std::shared_ptr<const SegmentIndex> index) {
    const SegmentFences* fences = &index->fences();
    return std::shared_ptr<const SegmentFences>(std::move(index), fences);
  };
  if (auto index = resident_.Share(); index != nullptr) return fences_of(std::move(index));
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  const DiskWait wait;
  if (IndexIsLoadable(*footer)) {
    absl::MutexLock lock(&load_mutex_);
    if (auto index = LoadIndex(*footer); index.ok()) return fences_of(*std::move(index));
  }
  caches_->statistics.table_loads.Add(1);
  VARVE_ASSIGN_OR_RETURN(auto loaded, LoadedFences::Load(*file_, *footer));
  const SegmentFences* fences = &loaded->fences();
  return std::shared_ptr<const SegmentFences>(std::move(loaded), fences);
}

absl::Status Segment::ReadExactly(uint64_t offset, size_t size, char* buffer) const {
  const DiskWait wait;
  VARVE_ASSIGN_OR_RETURN(const size_t read, file_->Read(offset, size, buffer));
  if (read == size) return absl::OkStatus();
  return Corruption(
      file_->path(), offset + read,
      fmt::format("segment: the file ends here, but has {} bytes according to the manifest",
                  info_.file_size));
}

absl::Status Segment::DamagedRecord(uint64_t offset) {
  NoteDamage();
  return Corruption(file_->path(), offset, "segment record: wrong checksum or size");
}

BlockSpan Segment::CacheableBlockOf(uint64_t offset) const {
  const ResidentIndex::Pin pin(resident_);
  if (!pin) return {};
  const BlockSpan span = pin->fences().Span(pin->fences().BlockOf(offset));
  return pin->fences().IsCacheable(span) ? span : BlockSpan{};
}

std::unique_ptr<InternalIterator> Segment::NewIterator(CacheUse cache_use) {
  return std::make_unique<SegmentIterator>(this, cache_use);
}

}  // namespace varve
