#include "db/segment/segment_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "db/format/file_names.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_iterator.h"
#include "db/segment/segment_values.h"
#include "spdlog/spdlog.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/file_remover.h"

namespace varve {
namespace {

// Page reads after which a whole index is worth reading: sequential pages cost about an eighth of
// single ones.
uint64_t TouchesBeforeLoad(const SegmentFooter& footer) { return 2 + footer.table_pages / 8; }

// What can't be read is taken for damaged until the next start: so a device that fails is asked
// twice.
template <typename Read>
auto ReadTwice(const Read& read) {
  auto result = read();
  if (absl::IsInternal(result.status())) result = read();
  return result;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Segment>> Segment::Open(FileSystem* file_system,
                                                       const std::string& directory,
                                                       const SegmentInfo& info,
                                                       SegmentCaches* caches, DamagePolicy policy) {
  VARVE_ASSIGN_OR_RETURN(auto file, file_system->OpenForRead(SegmentPath(directory, info.number)));
  auto segment = std::make_shared<SegmentReader>(std::move(file), info, caches);
  segment->HoldValueFiles(file_system, directory);
  VARVE_RETURN_IF_ERROR(segment->Initialize(policy));
  return std::shared_ptr<Segment>(std::move(segment));
}

SegmentReader::SegmentReader(std::unique_ptr<File> file, const SegmentInfo& info,
                             SegmentCaches* caches)
    : file_(std::move(file)), caches_(caches) {
  info_ = info;
}

void SegmentReader::HoldValueFiles(FileSystem* file_system, const std::string& directory) {
  for (const ValueReference& file : info_.value_files) {
    value_files_.push_back(caches_->values.Acquire(file_system, directory, file.file_number));
  }
}

SegmentReader::~SegmentReader() {
  caches_->tables.Erase(&resident_);
  FileRemover* const remover = remover_.load(std::memory_order_relaxed);
  if (remover == nullptr) return;
  std::function<void()> forget;
  if (const SegmentFooter* footer = footer_.load(std::memory_order_acquire); footer != nullptr) {
    TryWithMemory([&] {
      forget = [caches = caches_, number = info_.number, size = footer->data_size,
                block_size = footer->block_size] {
        caches->ForgetBlocks(number, size, block_size);
      };
    });
  }
  remover->Remove(file_->path(), std::move(forget));
}

absl::Status SegmentReader::Initialize(DamagePolicy policy) {
  if (auto index = caches_->tables.Collect(info_.number); index != nullptr) {
    absl::MutexLock lock(&load_mutex_);
    footer_owner_ = std::make_unique<const SegmentFooter>(index->footer());
    footer_.store(footer_owner_.get(), std::memory_order_release);
    caches_->tables.Insert(&resident_, std::move(index));
  }
  if (info_.range_tombstones == 0) return absl::OkStatus();
  const auto read = [&]() -> absl::StatusOr<std::vector<RangeTombstone>> {
    VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
    return ReadSegmentRangeTombstones(*file_, *footer);
  };
  absl::StatusOr<std::vector<RangeTombstone>> tombstones = ReadTwice(read);
  if (tombstones.ok()) {
    range_tombstones_ = std::make_shared<const RangeTombstoneList>(*std::move(tombstones));
    return absl::OkStatus();
  }
  // That there is no memory, or no descriptor, says nothing of what is on disk.
  const bool is_damage =
      absl::IsDataLoss(tombstones.status()) || absl::IsInternal(tombstones.status());
  if (policy == DamagePolicy::kRefuse || !is_damage) return tombstones.status();
  range_tombstone_status_ = Report(UnsharedCopy(tombstones.status()));
  NoteDamage();
  return absl::OkStatus();
}

absl::Status SegmentReader::Report(absl::Status error) {
  // Says nothing of what is on disk.
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

absl::StatusOr<const SegmentFooter*> SegmentReader::Footer() {
  if (const SegmentFooter* footer = footer_.load(std::memory_order_acquire); footer != nullptr)
    return footer;
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

bool SegmentReader::ProbeResident(uint64_t hash, OffsetTableCandidates* candidates) const {
  const ResidentIndex::Pin pin(resident_);
  if (!pin) return false;
  pin->table().Lookup(hash, candidates);
  return true;
}

absl::Status SegmentReader::ProbePage(const SegmentFooter& footer, uint64_t hash,
                                      OffsetTableCandidates* candidates) {
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

absl::StatusOr<std::shared_ptr<const SegmentIndex>> SegmentReader::LoadIndex(
    const SegmentFooter& footer) {
  if (auto index = resident_.Share(); index != nullptr) return index;
  caches_->statistics.table_loads.Add(1);
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> index = SegmentIndex::Load(*file_, footer);
  if (absl::IsDataLoss(index.status())) index_is_damaged_.store(true, std::memory_order_relaxed);
  VARVE_RETURN_IF_ERROR(index.status());
  touches_.store(0, std::memory_order_relaxed);
  caches_->tables.Insert(&resident_, *index);
  return index;
}

bool SegmentReader::IndexIsLoadable(const SegmentFooter& footer) const {
  return !index_is_damaged_.load(std::memory_order_relaxed) &&
         caches_->tables.Fits(footer.index_size() +
                              footer.overflow.size() * sizeof(OffsetTableOverflow) +
                              sizeof(SegmentIndex));
}

void SegmentReader::MaybeLoadIndex(const SegmentFooter& footer, uint64_t touches) {
  if (touches < TouchesBeforeLoad(footer) || !IndexIsLoadable(footer)) return;
  // While another thread loads, this one goes on page by page.
  if (!load_mutex_.TryLock()) return;
  // Where the whole can't be read, single pages may still be good: their errors are the ones to
  // report.
  TryWithMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { (void)LoadIndex(footer).ok(); });
  load_mutex_.Unlock();
}

absl::Status SegmentReader::FindCandidates(uint64_t hash, OffsetTableCandidates* candidates) {
  if (ProbeResident(hash, candidates)) [[likely]]
    return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  if (footer->table_pages == 0) return absl::OkStatus();
  const uint64_t touches = touches_.fetch_add(1, std::memory_order_relaxed) + 1;
  MaybeLoadIndex(*footer, touches);
  if (ProbeResident(hash, candidates)) return absl::OkStatus();
  return ProbePage(*footer, hash, candidates);
}

absl::StatusOr<std::shared_ptr<const SegmentFences>> SegmentReader::Fences() {
  const auto fences_of = [](std::shared_ptr<const SegmentIndex> index) {
    const SegmentFences* fences = &index->fences();
    return std::shared_ptr<const SegmentFences>(std::move(index), fences);
  };
  if (auto index = resident_.Share(); index != nullptr) return fences_of(std::move(index));
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  if (IndexIsLoadable(*footer)) {
    absl::MutexLock lock(&load_mutex_);
    if (auto index = LoadIndex(*footer); index.ok()) return fences_of(*std::move(index));
  }
  caches_->statistics.table_loads.Add(1);
  VARVE_ASSIGN_OR_RETURN(auto loaded, LoadedFences::Load(*file_, *footer));
  const SegmentFences* fences = &loaded->fences();
  return std::shared_ptr<const SegmentFences>(std::move(loaded), fences);
}

absl::Status SegmentReader::ReadExactly(uint64_t offset, size_t size, char* buffer) const {
  VARVE_ASSIGN_OR_RETURN(const size_t read, file_->Read(offset, size, buffer));
  if (read == size) return absl::OkStatus();
  return Corruption(
      file_->path(), offset + read,
      fmt::format("segment: the file ends here, but has {} bytes according to the manifest",
                  info_.file_size));
}

absl::Status SegmentReader::DamagedRecord(uint64_t offset) {
  NoteDamage();
  return Corruption(file_->path(), offset, "segment record: wrong checksum or size");
}

absl::StatusOr<ClockCache::Handle> SegmentReader::Block(BlockSpan span, uint32_t block_size,
                                                        ShardedCounter* reads) {
  const uint64_t key = BlockKey(span.begin, block_size);
  if (ClockCache::Handle block = caches_->blocks.Lookup(info_.number, key, span.begin)) {
    caches_->statistics.block_cache_hits.Add(1);
    return block;
  }
  caches_->statistics.block_cache_misses.Add(1);
  ClockCache::Handle block = caches_->blocks.New(span.end - span.begin);
  block.set_base(span.begin);
  reads->Add(1);
  VARVE_RETURN_IF_ERROR(ReadExactly(span.begin, block.data().size(), block.mutable_data()));
  RecordView record;
  for (std::string_view rest = block.data(); !rest.empty();) {
    const size_t size = DecodeRecord(rest, info_.number, ChecksumMode::kVerify, &record);
    if (size == 0) {
      block.set_flagged();
      break;
    }
    rest.remove_prefix(size);
  }
  return caches_->blocks.Insert(info_.number, key, std::move(block));
}

absl::StatusOr<bool> SegmentReader::Get(std::string_view tree_key, uint64_t hash, SequenceNumber at,
                                        bool fill_cache, FoundRecord* found) {
  caches_->statistics.lookups.Add(1);
  if (const std::optional<bool> known = FindInMemory(tree_key, hash, at, found)) [[likely]]
    return *known;
  absl::StatusOr<bool> result = Find(tree_key, hash, at, fill_cache, found);
  if (result.ok() && *result && !found->too_large && IsSeparated(found->record) &&
      !found->without_value) [[unlikely]]
    return FollowPlace(tree_key, found);  // damage of values is not the segment's
  if (!result.ok()) [[unlikely]]
    return Report(result.status());
  return result;
}

absl::StatusOr<bool> SegmentReader::Find(std::string_view tree_key, uint64_t hash,
                                         SequenceNumber at, bool fill_cache, FoundRecord* found) {
  if (!range_tombstone_status_.ok()) [[unlikely]]
    return UnsharedCopy(range_tombstone_status_);
  OffsetTableCandidates candidates;
  if (found->peeked != nullptr && found->peeked->is_only) {
    candidates.push_back(found->peeked->entry);
  } else {
    VARVE_RETURN_IF_ERROR(FindCandidates(hash, &candidates));
  }
  absl::Status error;
  for (const OffsetTableEntry& candidate : candidates) {
    const absl::StatusOr<Outcome> outcome = Read(candidate, {tree_key, at}, fill_cache, found);
    if (!outcome.ok()) {
      // It may be another key's record that is damaged.
      error.Update(outcome.status());
    } else if (*outcome != Outcome::kOtherKey) {
      return *outcome == Outcome::kFound;
    } else {
      caches_->statistics.false_positives.Add(1);
    }
  }
  if (!error.ok()) return error;
  return false;
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::Read(const OffsetTableEntry& entry,
                                                           const Target& target, bool fill_cache,
                                                           FoundRecord* found) {
  if (IsValueAddress(info_, entry.offset)) return ReadValue(entry, target, fill_cache, found);
  if (caches_->blocks.capacity() == 0) return ReadFromDisk(entry, target, found);
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  // Scans leave the blocks of larger records, too.
  ClockCache::Handle block = caches_->blocks.Lookup(
      info_.number, BlockKey(entry.offset, footer->block_size), entry.offset);
  if (block) [[likely]] {
    caches_->statistics.block_cache_hits.Add(1);
  } else {
    const bool worth_a_block =
        fill_cache && LengthClassLimit(entry.length_class) <= kMaxRecordCachedByBlock;
    const BlockSpan span = worth_a_block ? CacheableBlockOf(entry.offset) : BlockSpan{};
    if (span.end == 0) return ReadOwnEntry(entry, target, fill_cache, found);
    VARVE_ASSIGN_OR_RETURN(block,
                           Block(span, footer->block_size, &caches_->statistics.record_reads));
  }
  // A table that leads elsewhere has a right checksum over a wrong slot.
  if (entry.offset - block.base() >= block.data().size()) return DamagedRecord(entry.offset);
  const std::string_view window = block.data().substr(entry.offset - block.base());
  const ChecksumMode mode = block.flagged() ? ChecksumMode::kVerify : ChecksumMode::kTrusted;
  found->pin = std::move(block);
  return Match(window, entry.offset, mode, target, found);
}

BlockSpan SegmentReader::CacheableBlockOf(uint64_t offset) const {
  const ResidentIndex::Pin pin(resident_);
  if (!pin) return {};
  const BlockSpan span = pin->fences().Span(pin->fences().BlockOf(offset));
  return pin->fences().IsCacheable(span) ? span : BlockSpan{};
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::ReadOwnEntry(const OffsetTableEntry& entry,
                                                                   const Target& target,
                                                                   bool fill_cache,
                                                                   FoundRecord* found) {
  const uint64_t offset = entry.offset;
  found->pin = caches_->blocks.Lookup(info_.number, RecordKey(offset), 0);
  if (found->pin) {
    caches_->statistics.block_cache_hits.Add(1);
    // What follows the record in the buffer was never verified.
    const std::string_view bytes = found->pin.data();
    return Match(bytes.substr(0, RecordSize(bytes)), offset, ChecksumMode::kTrusted, target, found);
  }
  caches_->statistics.block_cache_misses.Add(1);
  VARVE_ASSIGN_OR_RETURN(const uint64_t extent, ExtentOf(entry));
  if (extent > found->most_bytes) return TooLarge(found);
  ClockCache::Handle buffer = caches_->blocks.New(extent);
  caches_->statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(ReadExactly(offset, extent, buffer.mutable_data()));
  RecordView record;
  const size_t size = DecodeRecord(buffer.data(), info_.number, ChecksumMode::kVerify, &record);
  if (size == 0) return DamagedRecord(offset);
  const bool worth_keeping = fill_cache && record.key == target.key;
  found->pin = worth_keeping
                   ? caches_->blocks.Insert(info_.number, RecordKey(offset), std::move(buffer))
                   : std::move(buffer);
  return Match(found->pin.data().substr(0, size), offset, ChecksumMode::kTrusted, target, found);
}

SegmentReader::Outcome SegmentReader::TooLarge(FoundRecord* found) {
  found->too_large = true;
  return Outcome::kFound;
}

absl::StatusOr<uint64_t> SegmentReader::ExtentOf(const OffsetTableEntry& entry) {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  const uint64_t available = footer->data_size - std::min(footer->data_size, entry.offset);
  if (entry.length_class != kUnboundedLengthClass)
    return std::min(LengthClassLimit(entry.length_class), available);
  char header[kMaxRecordHeaderSize];
  const size_t header_size = std::min<uint64_t>(sizeof(header), available);
  caches_->statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(ReadExactly(entry.offset, header_size, header));
  const uint64_t size = RecordSize({header, header_size});
  if (size == 0 || size > available) return DamagedRecord(entry.offset);
  return size;
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::ReadFromDisk(const OffsetTableEntry& entry,
                                                                   const Target& target,
                                                                   FoundRecord* found) {
  found->pin.Release();
  VARVE_ASSIGN_OR_RETURN(const uint64_t extent, ExtentOf(entry));
  if (extent > found->most_bytes) return TooLarge(found);
  if (found->storage.size() < extent) found->storage.resize(extent);
  caches_->statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(ReadExactly(entry.offset, extent, found->storage.data()));
  return Match({found->storage.data(), extent}, entry.offset, ChecksumMode::kVerify, target, found);
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::Match(std::string_view window,
                                                            uint64_t offset, ChecksumMode mode,
                                                            const Target& target,
                                                            FoundRecord* found) {
  size_t size = DecodeRecord(window, info_.number, mode, &found->record);
  if (size == 0) return DamagedRecord(offset);
  if (found->record.key != target.key) return Outcome::kOtherKey;
  while (found->record.sequence > target.at) {
    window.remove_prefix(size);
    offset += size;
    // A record that isn't whole in the window, or damaged: reading it anew tells which.
    size = DecodeRecord(window, info_.number, mode, &found->record);
    if (size == 0) return ReadOlder(offset, target, found);
    if (found->record.key != target.key) return Outcome::kNoOlderVersion;
  }
  return Outcome::kFound;
}

absl::StatusOr<SegmentReader::Outcome> SegmentReader::ReadOlder(uint64_t offset,
                                                                const Target& target,
                                                                FoundRecord* found) {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, Footer());
  found->pin.Release();
  uint64_t wanted = kSegmentPageSize;
  while (offset < footer->data_size) {
    const uint64_t extent = std::min(wanted, footer->data_size - offset);
    if (found->storage.size() < extent) found->storage.resize(extent);
    caches_->statistics.record_reads.Add(1);
    VARVE_RETURN_IF_ERROR(ReadExactly(offset, extent, found->storage.data()));
    std::string_view window(found->storage.data(), extent);
    wanted = kSegmentPageSize;
    while (!window.empty()) {
      const size_t size = DecodeRecord(window, info_.number, ChecksumMode::kVerify, &found->record);
      if (size == 0) {
        const uint64_t available = footer->data_size - offset;
        const size_t needed = std::max(RecordSize(window), kMaxRecordHeaderSize);
        if (needed <= window.size() || window.size() == available ||
            RecordSize(window) > available) {
          return DamagedRecord(offset);
        }
        wanted = std::max<uint64_t>(wanted, needed);
        break;
      }
      if (found->record.key != target.key) return Outcome::kNoOlderVersion;
      if (found->record.sequence <= target.at) return Outcome::kFound;
      window.remove_prefix(size);
      offset += size;
    }
  }
  return Outcome::kNoOlderVersion;
}

std::unique_ptr<InternalIterator> SegmentReader::NewIterator(bool fill_cache) {
  return std::make_unique<SegmentIterator>(this, fill_cache);
}

}  // namespace varve
