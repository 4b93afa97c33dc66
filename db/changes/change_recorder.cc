#include "db/changes/change_recorder.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

constexpr uint64_t kLargestFile = uint64_t{64} << 20;
constexpr uint64_t kFileForFeeds = uint64_t{4} << 20;  // where nothing else retains changes
constexpr uint64_t kSmallestFile = uint64_t{64} << 10;
constexpr uint64_t kFilesOfLimit = 16;

// Does `work` until there is memory for it. It is little, and others free theirs meanwhile.
template <typename Work>
void DoWithMemory(Work work) {
  while (!TryWithMemory(work)) absl::SleepFor(absl::Milliseconds(1));
}

using Files = std::vector<std::shared_ptr<ChangeFile>>;

bool Holds(const Files& files, const std::shared_ptr<ChangeFile>& file) {
  return std::find(files.begin(), files.end(), file) != files.end();
}

// Returns the size from which on a file is full.
uint64_t FullSize(const ChangeRetention& limits) {
  if (!limits.on()) return kFileForFeeds;
  if (limits.bytes == 0) return kLargestFile;
  return std::clamp(limits.bytes / kFilesOfLimit, kSmallestFile, kLargestFile);
}

// Puts a file with this one commit on disk.
absl::StatusOr<std::shared_ptr<ChangeFile>> WriteAhead(const ChangeRecorderParts& parts,
                                                       ChangeTranslator translator,
                                                       const ChangeQueue::Batch& batch,
                                                       ChangeFilePlace* place) {
  const SequenceNumber after = batch.first - 1, last = after + batch.count;
  ChangeBlock block{.after = after, .last = after};
  std::string operations;
  translator.BeginBlock();
  translator.Translate(batch.operations, batch.first, batch.count, &block, &operations);
  AddCommit({last, parts.times->InstantOf(batch.first).value_or(0), operations}, &block);
  auto file = std::make_shared<ChangeFile>(parts.file_system, parts.directory,
                                           parts.new_file_number(), parts.remover);
  const std::string bytes = EncodeChangeBlock(block, file->number(), kChangeFileHeaderSize);
  absl::Status status = file->OpenForWriting(0);
  if (status.ok()) status = file->Write(kChangeFileHeaderSize, bytes);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = parts.file_system->SyncDirectory(parts.directory);
  file->EndWriting();
  if (!status.ok()) {
    file->MarkObsolete();
    return status;
  }
  *place = {.number = file->number(),
            .size = kChangeFileHeaderSize + bytes.size(),
            .after = after,
            .last = last,
            .last_ms = block.last_ms};
  return file;
}

}  // namespace

// --- Opening -------------------------------------------------------------------------------------

void ChangeRecorder::Start(const RetainedChanges& on_disk, const NamespaceTable& namespaces,
                           SequenceNumber flushed) {
  absl::MutexLock work(&work_mutex_);
  StartHeld(on_disk, namespaces, flushed);
}

void ChangeRecorder::StartHeld(const RetainedChanges& on_disk, const NamespaceTable& namespaces,
                               SequenceNumber flushed) {
  VARVE_ASSERT(!on());
  queue_.Take();
  absl::MutexLock head(&head_mutex_);
  work_.translator.Start(namespaces);
  for (const ChangeFilePlace& place : on_disk.files) {
    const auto file = std::make_shared<ChangeFile>(parts_.file_system, parts_.directory,
                                                   place.number, parts_.remover);
    head_.entries.push_back({file, place, place});
  }
  head_.first = on_disk.first;
  SequenceNumber last = on_disk.files.empty() ? on_disk.first : on_disk.files.back().last;
  if (!on_disk.on || last < flushed) {
    if (on_disk.on) {
      spdlog::error(
          "changes: those between the versions {} and {} were not retained, so readers "
          "of the change feed have to begin anew behind {}",
          last, flushed, flushed);
      ++given_up_;
    }
    DropEntriesLocked();
    head_.first = last = flushed;
  } else if (!on_disk.files.empty()) {
    const Entry& newest = head_.entries.back();
    // What lies behind the bytes that hold is of a crash.
    if (newest.place.size < FullSize(space_.limits()) &&
        newest.file->OpenForWriting(newest.place.size).ok()) {
      work_.file = newest.file;
      work_.offset = newest.place.size;
      work_.began_ms = newest.place.last_ms;
    }
  }
  head_.open = {.after = last, .last = last};
  head_.last_shown = last;
  if (!head_.entries.empty() && !feeds_.All()->empty()) {
    const Entry& newest = head_.entries.back();
    // Where that can't be read, all of it counts as shown.
    head_.last_shown =
        newest.file->LastCommit(newest.place.size, newest.place.after).value_or(last);
  }
  if (!head_.entries.empty()) head_.open.last_ms = head_.entries.back().place.last_ms;
  on_.store(true, std::memory_order_release);
}

void ChangeRecorder::Stop() {
  absl::MutexLock work(&work_mutex_);
  StopHeld();
}

void ChangeRecorder::StopHeld() {
  on_.store(false, std::memory_order_release);
  queue_.Take();
  absl::MutexLock head(&head_mutex_);
  DropEntriesLocked();
  head_ = {};
}

// --- Recording -----------------------------------------------------------------------------------

void ChangeRecorder::CatchUp() {
  // The queue may be empty because another thread records what it has taken from it.
  absl::MutexLock work(&work_mutex_);
  DrainHeld();
}

void ChangeRecorder::DrainHeld() {
  while (const std::unique_ptr<ChangeQueue::Chunk> list = queue_.Take()) {
    if (!on()) return;
    ChangeQueue::ForEach(*list, [this](const ChangeQueue::Batch& batch) {
      work_mutex_.AssertHeld();
      Record(batch);
    });
  }
}

void ChangeRecorder::Record(const ChangeQueue::Batch& batch) {
  const SequenceNumber last = batch.first + batch.count - 1;
  bool is_known = false, ends_block = false;
  {
    absl::MutexLock head(&head_mutex_);
    is_known = last <= head_.open.last;
    ends_block = batch.begins_buffer && head_.open.covers();
  }
  if (is_known) {
    DoWithMemory([&] {
      work_mutex_.AssertHeld();
      work_.translator.Follow(batch.operations);
    });
    return;
  }
  if (ends_block) FinishBlock();
  bool is_full = false, is_second_try = false, is_seen = false;
  {
    absl::MutexLock head(&head_mutex_);
    const uint64_t instant = parts_.times->InstantOf(batch.first).value_or(0);
    DoWithMemory([&] {
      work_mutex_.AssertHeld();
      head_mutex_.AssertHeld();
      if (is_second_try) work_.translator.BeginBlock();  // with names that may be wrong by now
      is_second_try = true;
      is_seen = work_.translator.Translate(batch.operations, batch.first, batch.count, &head_.open,
                                           &work_.operations);
    });
    DoWithMemory([&] {
      work_mutex_.AssertHeld();
      head_mutex_.AssertHeld();
      ReserveMore(&head_.open_places, 1);
      const size_t offset = head_.open.commits.size();
      AddCommit({last, instant, work_.operations}, &head_.open);
      if (head_.open.commits.size() == offset) return;
      head_.open_places.emplace_back(last, offset);
      if (is_seen) head_.last_shown = last;
    });
    is_full = head_.open.size() >= kChangeBlockSize;
  }
  if (work_.operations.capacity() > kChangeBlockSize) std::string().swap(work_.operations);
  if (is_full) FinishBlock();
}

void ChangeRecorder::FinishBlock() {
  {
    absl::MutexLock head(&head_mutex_);
    VARVE_ASSERT(head_.open.covers());
    ChangeBlock next{
        .after = head_.open.last, .last = head_.open.last, .last_ms = head_.open.last_ms};
    const size_t size = head_.open.size();
    DoWithMemory([&] {
      head_mutex_.AssertHeld();
      head_.pending.emplace_back();
    });
    head_.pending.back() = std::exchange(head_.open, std::move(next));
    head_.pending_bytes += size;
    head_.open_places.clear();
    work_.translator.BeginBlock();
  }
  WritePending();
}

void ChangeRecorder::WritePending() {
  for (;;) {
    const ChangeBlock* block = nullptr;
    size_t waiting = 0;
    {
      absl::MutexLock head(&head_mutex_);
      waiting = head_.pending_bytes;
      if (!head_.pending.empty()) block = &head_.pending.front();
    }
    if (block == nullptr) break;
    // Nobody else changes the block.
    const absl::Status written = GuardMemory("writing changes", [&] {
      work_mutex_.AssertHeld();
      return WriteBlock(*block);
    });
    if (!written.ok()) {
      if (!std::exchange(work_.failing, true))
        TryWithMemory([&] { spdlog::error("changes are not written: {}", written.ToString()); });
      LeaveFile();
      if (waiting > kMostPending) GiveUp(written);
      return;
    }
  }
  if (std::exchange(work_.failing, false))
    TryWithMemory([] { spdlog::info("changes are written again"); });
}

void ChangeRecorder::LeaveFile() {
  if (work_.file == nullptr) return;
  const std::shared_ptr<ChangeFile> left = std::exchange(work_.file, nullptr);
  if (!Holds(work_.unsynced, left)) left->EndWriting();  // else SyncFiles() does
  left->EndReading();  // from now on Read() does so at the end of the file
  absl::MutexLock head(&head_mutex_);
  // Without a block nobody knows of the file.
  if (head_.entries.empty() || head_.entries.back().file != left) left->MarkObsolete();
}

bool ChangeRecorder::NeedsFile(const ChangeBlock& block) const {
  if (work_.file == nullptr || work_.offset >= FullSize(space_.limits())) return true;
  const uint64_t age = space_.limits().time_ms / kFilesOfLimit;
  return age != 0 && block.last_ms > work_.began_ms + age;
}

absl::Status ChangeRecorder::BeginFile(const ChangeBlock& block) {
  LeaveFile();
  const auto file = std::make_shared<ChangeFile>(parts_.file_system, parts_.directory,
                                                 parts_.new_file_number(), parts_.remover);
  work_.directory_due = true;
  if (absl::Status made = file->OpenForWriting(0); !made.ok()) {
    file->MarkObsolete();
    return made;
  }
  work_.file = file;
  work_.offset = kChangeFileHeaderSize;
  work_.began_ms = block.count == 0 ? block.last_ms : block.first_ms;
  return absl::OkStatus();
}

absl::Status ChangeRecorder::WriteBlock(const ChangeBlock& block) {
  if (NeedsFile(block)) VARVE_RETURN_IF_ERROR(BeginFile(block));
  const std::string bytes = EncodeChangeBlock(block, work_.file->number(), work_.offset);
  const uint64_t end = work_.offset + bytes.size();
  ReserveMore(&work_.unsynced, 1);
  work_.ends.push_back({work_.file->number(), end, block.last, block.last_ms});
  if (absl::Status written = work_.file->Write(work_.offset, bytes); !written.ok()) {
    work_.ends.pop_back();
    return written;
  }
  absl::MutexLock head(&head_mutex_);
  // Without memory for the entry the file goes (LeaveFile()), and NameBlocks() passes over its end.
  if (head_.entries.empty() || head_.entries.back().file != work_.file) {
    head_.entries.push_back({work_.file,
                             {.number = work_.file->number(), .after = block.after},
                             {.number = work_.file->number(), .after = block.after}});
  }
  if (!Holds(work_.unsynced, work_.file)) work_.unsynced.push_back(work_.file);
  work_.offset = end;
  ChangeFilePlace& place = head_.entries.back().place;
  place.size = end;
  place.last = block.last;
  place.last_ms = block.last_ms;
  head_.pending_bytes -= block.size();
  head_.pending.pop_front();
  return absl::OkStatus();
}

void ChangeRecorder::DropEntriesLocked() {
  for (Entry& entry : head_.entries) work_.dropped.push_back(std::move(entry.file));
  head_.entries.clear();
  head_.pending.clear();
  head_.pending_bytes = 0;
  work_.ends.clear();
  work_.unsynced.clear();
  work_.file = nullptr;
}

void ChangeRecorder::GiveUp(const absl::Status& reason) {
  absl::MutexLock head(&head_mutex_);
  DoWithMemory([this] {
    work_mutex_.AssertHeld();
    head_mutex_.AssertHeld();
    work_.dropped.reserve(work_.dropped.size() + head_.entries.size());
  });
  DropEntriesLocked();
  const SequenceNumber before = std::exchange(head_.first, head_.open.after);
  ++given_up_;
  TryWithMemory([&] {
    head_mutex_.AssertHeld();
    spdlog::error(
        "changes: those behind version {} up to {} are given up, so readers of the "
        "change feed have to begin anew: {}",
        before, head_.first, reason.ToString());
  });
}

// --- Installing ----------------------------------------------------------------------------------

absl::Status ChangeRecorder::SyncFiles() {
  for (const std::shared_ptr<ChangeFile>& file : work_.unsynced) {
    VARVE_RETURN_IF_ERROR(file->Sync());
    if (file != work_.file) file->EndWriting();
  }
  if (work_.directory_due)
    VARVE_RETURN_IF_ERROR(parts_.file_system->SyncDirectory(parts_.directory));
  work_.unsynced.clear();
  work_.directory_due = false;
  return absl::OkStatus();
}

void ChangeRecorder::NameBlocks(SequenceNumber up_to) {
  absl::MutexLock head(&head_mutex_);
  for (; !work_.ends.empty() && work_.ends.front().last <= up_to; work_.ends.pop_front()) {
    const BlockEnd& end = work_.ends.front();
    const auto entry = std::find_if(head_.entries.begin(), head_.entries.end(),
                                    [&](const Entry& e) { return e.place.number == end.number; });
    if (entry == head_.entries.end()) continue;
    entry->named.size = end.offset;
    entry->named.last = end.last;
    entry->named.last_ms = end.last_ms;
  }
}

void ChangeRecorder::Persist(SequenceNumber flushed, const ChangeQueue::Batch* ahead,
                             RetainedChanges* next) {
  absl::MutexLock work(&work_mutex_);
  DrainHeld();
  if (on()) {
    bool ends_block = false;
    {
      absl::MutexLock head(&head_mutex_);
      ends_block = head_.open.covers() && head_.open.last <= flushed;
    }
    if (ends_block) {
      FinishBlock();
    } else {
      WritePending();
    }
    const absl::Status synced = GuardMemory("syncing changes", [this] {
      work_mutex_.AssertHeld();
      return SyncFiles();
    });
    if (!synced.ok()) GiveUp(synced);
    NameBlocks(flushed);
    Trim();
  }
  RetainedChanges named{.on = on()};
  {
    absl::MutexLock head(&head_mutex_);
    named.first = head_.first;
    for (const Entry& entry : head_.entries) {
      if (entry.named.size != 0) named.files.push_back(entry.named);
    }
  }
  work_.unnamed.reserve(work_.unnamed.size() + work_.dropped.size() + 1);
  std::shared_ptr<ChangeFile> file_ahead;
  const SequenceNumber last = named.files.empty() ? named.first : named.files.back().last;
  if (ahead != nullptr && named.on && last + 1 == ahead->first) {
    ChangeFilePlace place;
    named.files.reserve(named.files.size() + 1);
    // Where it can't be written, a crash before the next flush costs readers their place.
    absl::StatusOr<std::shared_ptr<ChangeFile>> written =
        GuardMemory("writing the changes of an ingest", [&] {
          work_mutex_.AssertHeld();
          return WriteAhead(parts_, work_.translator, *ahead, &place);
        });
    if (written.ok()) {
      file_ahead = *std::move(written);
      named.files.push_back(place);
    }
  }
  *next = std::move(named);
  if (work_.ahead != nullptr) work_.unnamed.push_back(std::move(work_.ahead));
  work_.ahead = std::move(file_ahead);
  for (std::shared_ptr<ChangeFile>& file : work_.dropped) work_.unnamed.push_back(std::move(file));
  work_.dropped.clear();
}

void ChangeRecorder::NoteInstalled() {
  absl::MutexLock work(&work_mutex_);
  for (const std::shared_ptr<ChangeFile>& file : work_.unnamed) file->MarkObsolete();
  work_.unnamed.clear();
}

// --- Retention -----------------------------------------------------------------------------------

uint64_t ChangeRecorder::BytesBehindLocked(SequenceNumber position) const {
  if (position >= head_.last_shown) return 0;
  uint64_t bytes = 0;
  for (auto entry = head_.entries.rbegin(); entry != head_.entries.rend(); ++entry) {
    const ChangeFilePlace& place = entry->place;
    if (place.last <= position) break;
    // As if all versions took the same.
    const SequenceNumber from = std::max(position, place.after);
    bytes += static_cast<uint64_t>(static_cast<double>(place.size) *
                                   static_cast<double>(place.last - from) /
                                   static_cast<double>(place.last - place.after));
  }
  return bytes;
}

bool ChangeRecorder::FeedExceedsBoundsLocked(const FeedPlace& feed, uint64_t now_ms) const {
  if (feed.position >= head_.last_shown) return false;
  if (BytesBehindLocked(feed.position) > MostBytesOf(feed)) return true;
  const uint64_t most_age = MostAgeMillisOf(feed);
  const std::optional<uint64_t> oldest = parts_.times->InstantOf(feed.position + 1);
  return oldest && now_ms > most_age && *oldest < now_ms - most_age;
}

size_t ChangeRecorder::CountToTrimLocked(std::vector<std::string>* lost) const {
  const uint64_t now_ms = parts_.now_ms();
  const ChangeRetention& limits = parts_.limits;
  const uint64_t for_followers = space_.follower_bytes();
  SequenceNumber held = kMaxSequence;  // feeds need what is behind it
  const std::shared_ptr<const FeedTable::Feeds> feeds = feeds_.All();
  for (const FeedPlace& feed : *feeds) {
    if (!feed.lost && !FeedExceedsBoundsLocked(feed, now_ms)) held = std::min(held, feed.position);
  }
  uint64_t bytes = 0;
  for (const Entry& entry : head_.entries) bytes += entry.place.size;
  size_t count = 0;
  SequenceNumber first = head_.first;
  for (const Entry& entry : head_.entries) {
    const bool is_last = count + 1 == head_.entries.size();
    const bool is_over = limits.bytes != 0 && bytes > limits.bytes && !is_last;
    const bool is_old = limits.time_ms != 0 && entry.place.last_ms + limits.time_ms < now_ms;
    // A file that goes must be in the manifest as a whole: first() is never behind the log's end.
    if (!(is_over || is_old || !limits.on()) || entry.place.last > held ||
        (for_followers != 0 && (bytes <= for_followers || is_last)) ||
        entry.named.last != entry.place.last)
      break;
    bytes -= entry.place.size;
    first = entry.place.last;
    ++count;
  }
  for (const FeedPlace& feed : *feeds) {
    if (!feed.lost && feed.position < first) lost->push_back(feed.name);
  }
  return count;
}

bool ChangeRecorder::HasToTrim() const {
  absl::MutexLock work(&work_mutex_);
  if (!work_.dropped.empty() || !work_.unnamed.empty() || work_.ahead != nullptr) return true;
  if (!on()) return false;
  absl::MutexLock head(&head_mutex_);
  std::vector<std::string> lost;
  return CountToTrimLocked(&lost) != 0 || !lost.empty();
}

void ChangeRecorder::Trim() {
  std::vector<std::string> lost;
  {
    absl::MutexLock head(&head_mutex_);
    size_t count = CountToTrimLocked(&lost);
    work_.dropped.reserve(work_.dropped.size() + count);
    for (; count > 0; --count) {
      Entry& oldest = head_.entries.front();
      if (work_.file == oldest.file) work_.file = nullptr;
      head_.first = oldest.place.last;
      work_.dropped.push_back(std::move(oldest.file));
      head_.entries.pop_front();
    }
  }
  if (lost.empty()) return;
  feeds_.MarkLost(lost);
  lost_feeds_ += lost.size();
  for (const std::string& name : lost) {
    spdlog::error(
        "changes: the feed {} is lost, since changes behind its position were given up; "
        "its reader has to begin anew",
        name);
  }
}

// --- Reading -------------------------------------------------------------------------------------

SequenceNumber ChangeRecorder::first() const {
  absl::MutexLock head(&head_mutex_);
  return head_.first;
}

void ChangeRecorder::CopyBlockLocked(const ChangeBlock& block, SequenceNumber position,
                                     ChangeBlock* copy) const {
  size_t skipped = 0;  // commits of the open block that the reader has read
  if (&block == &head_.open) {
    const auto next =
        std::partition_point(head_.open_places.begin(), head_.open_places.end(),
                             [&](const auto& place) { return place.first <= position; });
    skipped = next == head_.open_places.end() ? block.commits.size() : next->second;
  }
  copy->after = block.after;
  copy->last = block.last;
  copy->first_ms = block.first_ms;
  copy->last_ms = block.last_ms;
  copy->dictionary = block.dictionary;
  copy->commits.assign(block.commits, skipped);
}

absl::StatusOr<bool> ChangeRecorder::Read(SequenceNumber position, ChangeReadPlace* place,
                                          SequenceNumber* covered) {
  for (bool caught_up = false;; caught_up = true) {
    std::shared_ptr<ChangeFile> file;
    uint64_t end = 0;
    bool is_full = false;  // another file follows
    {
      absl::MutexLock head(&head_mutex_);
      if (position < head_.first) return Trimmed(head_.first);
      const auto entry =
          std::partition_point(head_.entries.begin(), head_.entries.end(),
                               [&](const Entry& each) { return each.place.last <= position; });
      if (entry != head_.entries.end()) {
        file = entry->file;
        end = entry->place.size;
        is_full = entry + 1 != head_.entries.end();
      } else {
        const auto pending =
            std::partition_point(head_.pending.begin(), head_.pending.end(),
                                 [&](const ChangeBlock& each) { return each.last <= position; });
        const ChangeBlock* const block = pending != head_.pending.end() ? &*pending : &head_.open;
        place->file_number = 0;
        if (block->last > position) {
          CopyBlockLocked(*block, position, &place->block);
          return true;
        }
        *covered = block->last;
      }
    }
    if (file == nullptr) {
      if (caught_up) return false;
      CatchUp();
      continue;
    }
    if (place->file_number != file->number() || place->block.last != position) {
      place->file_number = 0;
      VARVE_ASSIGN_OR_RETURN(place->next_offset, file->FindBlock(position, end));
    }
    VARVE_ASSIGN_OR_RETURN(place->next_offset,
                           file->ReadBlock(place->next_offset, end, &place->block));
    place->file_number = file->number();
    if (is_full && place->next_offset == end) file->EndReading();
    if (position >= place->block.last || position < place->block.after) {
      return Corruption(file->path(), place->next_offset,
                        "a block of changes lies behind the wrong one");
    }
    return true;
  }
}

uint64_t ChangeRecorder::BytesBehind(SequenceNumber position) const {
  absl::MutexLock head(&head_mutex_);
  return BytesBehindLocked(position);
}

ChangeFigures ChangeRecorder::Figures() const {
  ChangeFigures figures{.on = on(),
                        .memory_bytes = queue_.bytes(),
                        .given_up = given_up_.load(),
                        .lost_feeds = lost_feeds_.load()};
  absl::MutexLock head(&head_mutex_);
  figures.first = head_.first;
  figures.files = head_.entries.size();
  for (const Entry& entry : head_.entries) figures.file_bytes += entry.place.size;
  figures.memory_bytes += head_.pending_bytes + head_.open.size();
  return figures;
}

}  // namespace varve
