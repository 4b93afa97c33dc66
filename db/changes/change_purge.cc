#include "db/changes/change_purge.h"

#include <algorithm>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "fmt/format.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

// Returns whether the operation names the key as one that it changed, which no bound of a range
// that somebody deleted does.
bool Names(const ChangeRecord& record, std::string_view key) {
  switch (record.kind) {
    case Kind::kSet:
    case Kind::kDelete:
    case Kind::kExpire:
    case Kind::kExpired:
    case Kind::kEvicted:
    case Kind::kMeta:
      return record.key == key;
    case Kind::kIngest:
      return record.key == key || record.value == key;
    default:
      return false;
  }
}

// Returns the shortest bytes that lie behind the key and do not begin with it, or, for a key of
// 0xff alone, one more of these.
std::string Behind(std::string_view key) {
  const size_t at = key.find_first_not_of('\xff');
  if (at == std::string_view::npos) return std::string(key.size() + 1, '\xff');
  std::string behind(key.substr(0, at + 1));
  behind.back() = static_cast<char>(static_cast<uint8_t>(behind.back()) + 1);
  return behind;
}

// Calls `visit` with each operation of the block, the id of its namespace, and its bytes.
template <typename Visit>
void ForEachOperation(const ChangeBlock& block, const ChangeCommit& commit, Visit visit) {
  for (size_t at = 0; at < commit.operations.size();) {
    const size_t begin = at;
    ChangeRecord record;
    const bool is_read = ReadChangeRecord(commit, &at, &record);
    VARVE_ASSERT(is_read);  // the block was checked when it was read
    visit(record, block.dictionary[record.space].first,
          commit.operations.substr(begin, at - begin));
  }
}

template <typename Visit>
void ForEachCommit(const ChangeBlock& block, Visit visit) {
  for (size_t at = 0; at < block.commits.size();) {
    ChangeCommit commit;
    const bool is_read = ReadCommit(block, &at, &commit);
    VARVE_ASSERT(is_read);
    visit(commit);
  }
}

absl::Status NotRewritten(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      fmt::format("the key is deleted, but retained changes may hold it still: {}{}",
                  std::string(status.message()),
                  absl::IsDataLoss(status)
                      ? "; purge the key again once the damaged file is no longer retained, or "
                        "start the store without change-retention-bytes and change-retention-time "
                        "and drop its feeds"
                      : "; purge the key again"));
}

}  // namespace

ChangePurge::~ChangePurge() {
  if (left_ == nullptr) return;
  absl::MutexLock work(&recorder_.work_mutex_);
  absl::MutexLock head(&recorder_.head_mutex_);
  ChangeRecorder::Work& state = recorder_.work_;
  const auto& entries = recorder_.head_.entries;
  if (state.file == nullptr && !state.failing && !entries.empty() && entries.back().file == left_) {
    state.file = left_;
    state.offset = entries.back().place.size;
    state.began_ms = began_ms_;
  } else {
    left_->EndWriting();
  }
}

std::set<uint64_t> ChangePurge::LiveFiles(const ChangeRecorder& recorder) {
  absl::MutexLock head(&recorder.head_mutex_);
  std::set<uint64_t> numbers;
  for (const ChangeRecorder::Entry& entry : recorder.head_.entries)
    numbers.insert(entry.file->number());
  return numbers;
}

// --- Searching -----------------------------------------------------------------------------------

absl::Status ChangePurge::Begin() {
  VARVE_RETURN_IF_ERROR(Seal());
  std::deque<Source> holding;
  std::vector<Event> events;
  for (; !sources_.empty(); sources_.pop_front()) {
    absl::StatusOr<bool> holds = Search(sources_.front(), &events);
    if (!holds.ok()) return NotRewritten(holds.status());
    sources_.front().file->EndReading();
    if (*holds) holding.push_back(std::move(sources_.front()));
  }
  sources_ = std::move(holding);
  FollowBack(std::move(events));
  return absl::OkStatus();
}

absl::Status ChangePurge::Seal() {
  absl::MutexLock work(&recorder_.work_mutex_);
  recorder_.DrainHeld();
  if (!recorder_.on()) return absl::OkStatus();
  const auto has_purged = [&](const ChangeBlock& block) {
    return block.covers() && block.after < purged_.up_to;
  };
  bool ends_block = false;
  {
    absl::MutexLock head(&recorder_.head_mutex_);
    ends_block = has_purged(recorder_.head_.open);
  }
  if (ends_block) {
    recorder_.FinishBlock();
  } else {
    recorder_.WritePending();
  }
  const absl::Status synced = GuardMemory("syncing changes", [this] {
    recorder_.work_mutex_.AssertHeld();
    return recorder_.SyncFiles();
  });
  // The kernel may take the bytes for written from now on.
  if (!synced.ok()) recorder_.GiveUp(synced);
  // The descriptor stays, so that the recorder can go on with the file when the purge has ended.
  left_ = std::exchange(recorder_.work_.file, nullptr);
  began_ms_ = recorder_.work_.began_ms;
  absl::MutexLock head(&recorder_.head_mutex_);
  const auto& pending = recorder_.head_.pending;
  const auto& entries = recorder_.head_.entries;
  if (!pending.empty() && has_purged(pending.front())) {
    return absl::UnavailableError(
        "the key is deleted, but retained changes that may hold it wait in memory, since they "
        "can't be written: see the log, and purge the key again");
  }
  for (const ChangeRecorder::Entry& entry : entries) {
    if (entry.place.after < purged_.up_to) sources_.push_back({entry.file, entry.place.size});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ChangePurge::Search(const Source& source, std::vector<Event>* events) const {
  bool holds = false;
  ChangeBlock block;
  for (uint64_t offset = kChangeFileHeaderSize; offset < source.size;) {
    VARVE_ASSIGN_OR_RETURN(offset, source.file->ReadBlock(offset, source.size, &block));
    ForEachCommit(block, [&](const ChangeCommit& commit) {
      ForEachOperation(
          block, commit, [&](const ChangeRecord& record, NamespaceId space, std::string_view) {
            if (record.version > purged_.up_to) return;
            if (record.kind == Kind::kFlush || record.kind == Kind::kDrop)
              events->push_back({record.version, record.kind, space});
            if (record.kind == Kind::kSwap && record.value.size() == kGenerationSize)
              events->push_back({record.version, record.kind, space, GenerationOf(record.value)});
            holds |= Names(record, purged_.key);
          });
    });
  }
  return holds;
}

void ChangePurge::FollowBack(std::vector<Event> events) {
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.version > b.version; });
  std::vector<NamespaceId> spaces = {purged_.space};
  for (const Event& event : events) {
    std::vector<NamespaceId> before = spaces;
    if (event.kind == Kind::kSwap) {
      for (NamespaceId& space : before) {
        if (space == event.space || space == event.other)
          space = space == event.space ? event.other : event.space;
      }
    } else {
      // What it held until then is purged with the namespace whose id it was.
      std::erase(before, event.space);
      if (event.space == purged_.space) before.push_back(event.space);
    }
    std::sort(before.begin(), before.end());
    if (before == spaces) continue;
    stretches_.push_back({event.version, std::exchange(spaces, std::move(before))});
  }
  stretches_.push_back({kNoSequence, std::move(spaces)});
}

// --- Rewriting -----------------------------------------------------------------------------------

bool ChangePurge::NamesPurged(const ChangeRecord& record, NamespaceId space) const {
  if (record.version > purged_.up_to || !Names(record, purged_.key)) return false;
  const auto stretch = std::find_if(stretches_.begin(), stretches_.end(), [&](const Stretch& each) {
    return each.first <= record.version;
  });
  VARVE_ASSERT(stretch != stretches_.end());
  return std::binary_search(stretch->spaces.begin(), stretch->spaces.end(), space);
}

bool ChangePurge::NamesPurged(const ChangeBlock& block) const {
  bool holds = false;
  ForEachCommit(block, [&](const ChangeCommit& commit) {
    ForEachOperation(block, commit,
                     [&](const ChangeRecord& record, NamespaceId space, std::string_view) {
                       holds = holds || NamesPurged(record, space);
                     });
  });
  return holds;
}

absl::StatusOr<bool> ChangePurge::NamesPurged(const Source& source) const {
  ChangeBlock block;
  for (uint64_t offset = kChangeFileHeaderSize; offset < source.size;) {
    VARVE_ASSIGN_OR_RETURN(offset, source.file->ReadBlock(offset, source.size, &block));
    if (NamesPurged(block)) return true;
  }
  return false;
}

ChangeBlock ChangePurge::Filter(const ChangeBlock& block, uint64_t* operations) const {
  ChangeBlock kept{.after = block.after, .last = block.after, .dictionary = block.dictionary};
  std::string bytes;
  ForEachCommit(block, [&](const ChangeCommit& commit) {
    bytes.clear();
    ForEachOperation(
        block, commit,
        [&](const ChangeRecord& record, NamespaceId space, std::string_view operation) {
          if (!NamesPurged(record, space)) {
            bytes.append(operation);
            return;
          }
          ++*operations;
          if (record.kind != Kind::kIngest) return;
          // The other keys of the ingest are still between its bounds.
          const std::string behind = Behind(purged_.key);
          ChangeRecord wider = record;
          if (record.key == purged_.key) wider.key = {};
          if (record.value == purged_.key) wider.value = behind;
          AppendChangeRecord(wider, commit.last, &bytes);
        });
    AddCommit({commit.last, commit.instant_ms, bytes}, &kept);
  });
  kept.last = block.last;
  // So the file is as old as it was.
  if (kept.count == 0) kept.first_ms = block.first_ms;
  kept.last_ms = block.last_ms;
  return kept;
}

absl::Status ChangePurge::Rewrite(const Source& source, Replacement* replacement) const {
  ChangeFile& file = *replacement->file;
  VARVE_RETURN_IF_ERROR(file.OpenForWriting(0));
  ChangeBlock block;
  for (uint64_t offset = kChangeFileHeaderSize; offset < source.size;) {
    VARVE_ASSIGN_OR_RETURN(offset, source.file->ReadBlock(offset, source.size, &block));
    if (NamesPurged(block)) block = Filter(block, &replacement->operations);
    const std::string bytes = EncodeChangeBlock(block, file.number(), replacement->size);
    VARVE_RETURN_IF_ERROR(file.Write(replacement->size, bytes));
    replacement->size += bytes.size();
    replacement->ends.emplace_back(offset, replacement->size);
  }
  return file.Sync();
}

absl::StatusOr<bool> ChangePurge::RewriteSome() {
  const ChangeRecorderParts& parts = recorder_.parts_;
  std::vector<Replacement> replacements;
  absl::Cleanup discard = [&] {
    for (const Replacement& each : replacements) each.file->MarkObsolete();
  };
  for (uint64_t bytes = 0; !sources_.empty() && bytes < most_at_once_; sources_.pop_front()) {
    const Source& source = sources_.front();
    const absl::StatusOr<bool> holds = NamesPurged(source);
    if (!holds.ok()) return NotRewritten(holds.status());
    if (!*holds) {
      source.file->EndReading();
      continue;
    }
    const auto file = std::make_shared<ChangeFile>(parts.file_system, parts.directory,
                                                   parts.new_file_number(), parts.remover);
    replacements.push_back({.old = source.file, .file = file});
    VARVE_RETURN_IF_ERROR(NotRewritten(Rewrite(source, &replacements.back())));
    bytes += source.size;
  }
  if (replacements.empty()) return false;
  VARVE_RETURN_IF_ERROR(NotRewritten(parts.file_system->SyncDirectory(parts.directory)));
  Replace(replacements);
  std::move(discard).Cancel();
  return !sources_.empty();
}

void ChangePurge::Replace(const std::vector<Replacement>& replacements) {
  absl::MutexLock work(&recorder_.work_mutex_);
  ChangeRecorder::Work& state = recorder_.work_;
  state.dropped.reserve(state.dropped.size() + replacements.size());
  absl::MutexLock head(&recorder_.head_mutex_);
  for (const Replacement& each : replacements) {
    const auto entry = std::find_if(recorder_.head_.entries.begin(), recorder_.head_.entries.end(),
                                    [&](const auto& e) { return e.file == each.old; });
    if (entry == recorder_.head_.entries.end()) {
      each.file->MarkObsolete();  // it is retained no longer
      continue;
    }
    const auto end_of = [&](uint64_t old_end) {
      const auto end = std::lower_bound(each.ends.begin(), each.ends.end(),
                                        std::pair<uint64_t, uint64_t>(old_end, 0));
      VARVE_ASSERT(end != each.ends.end() && end->first == old_end);
      return end->second;
    };
    VARVE_ASSERT(end_of(entry->place.size) == each.size);
    entry->place.size = each.size;
    if (entry->named.size != 0) entry->named.size = end_of(entry->named.size);
    for (ChangeRecorder::BlockEnd& end : state.ends) {
      if (end.number != each.old->number()) continue;
      end.number = each.file->number();
      end.offset = end_of(end.offset);
    }
    entry->place.number = entry->named.number = each.file->number();
    if (left_ == each.old) {
      left_ = each.file;
    } else {
      each.file->EndWriting();
    }
    state.dropped.push_back(std::exchange(entry->file, each.file));
    operations_ += each.operations;
  }
}

}  // namespace varve
