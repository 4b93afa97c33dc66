#include "db/log/log_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/log/log_file_reader.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "util/os/file_window.h"

namespace varve {
namespace {

struct FoundFile {
  uint64_t number = 0;
  std::string path;
  absl::Status header;                  // of its first page
  std::optional<SequenceNumber> first;  // of its first block, where that can be read
  uint64_t size = 0;
  uint64_t prepared_size = kLogPageSize;  // at least
};

bool IsTruncated(const FoundFile& file) { return file.size < file.prepared_size; }

enum class Mode { kRecover, kSurvey };

// Tells a listener how far a replay has come, each few MiB.
class ReplayMeter {
 public:
  // `listener`: null: nobody is told.
  explicit ReplayMeter(ReplayListener listener) : listener_(std::move(listener)) {}

  void Begin(uint64_t bytes_total) {
    total_ = bytes_total;
    Tell(0);
  }
  // Notes that all bytes of the present file up to `offset` are read.
  void ReachOffset(uint64_t offset) {
    if (before_file_ + offset >= told_ + kStep) Tell(before_file_ + offset);
  }
  // Notes that nothing more is read of the present file, which has `size` bytes.
  void EndFile(uint64_t size) {
    ReachOffset(size);
    before_file_ += size;
  }
  void End() {
    if (total_ != 0 && told_ != total_) Tell(total_);
  }

 private:
  static constexpr uint64_t kStep = 4u << 20;

  void Tell(uint64_t bytes) {
    told_ = bytes;
    if (listener_ && total_ != 0) listener_({.bytes_read = bytes, .bytes_total = total_});
  }

  const ReplayListener listener_;
  uint64_t total_ = 0;
  uint64_t before_file_ = 0;  // bytes of the files before the present one
  uint64_t told_ = 0;
};

class Recovery {
 public:
  Recovery(FileSystem* file_system, const std::string& directory, uint64_t store_id,
           SequenceNumber flushed, const std::vector<LogEnd>& known_ends,
           const DeliverBatch& deliver, Mode mode, ReplayListener on_replay = nullptr,
           TakeMark on_mark = nullptr)
      : file_system_(file_system),
        directory_(directory),
        store_id_(store_id),
        flushed_(flushed),
        known_ends_(known_ends),
        deliver_(deliver),
        mode_(mode),
        on_mark_(std::move(on_mark)),
        meter_(std::move(on_replay)) {
    result_.last_sequence = flushed;
  }

  absl::StatusOr<LogRecovery> Run() {
    VARVE_RETURN_IF_ERROR(FindFiles());
    size_t index = FirstNeededFile();
    for (size_t i = 0; i < index; ++i) result_.obsolete_paths.push_back(files_[i].path);
    if (index < files_.size()) next_ = std::min(files_[index].first.value_or(1), flushed_ + 1);
    meter_.Begin(BytesFrom(index));
    while (index < files_.size()) {
      absl::Status status = ReplayFile(files_[index], begin_);
      begin_ = kLogPageSize;
      meter_.EndFile(files_[index].size);
      size_t continuation = status.ok() ? FileThatBeginsWithNext(index + 1) : files_.size();
      if (status.ok() && continuation == files_.size()) status = CheckThatNothingIsMissing(index);
      if (!status.ok()) {
        if (mode_ == Mode::kRecover || !absl::IsDataLoss(status)) return status;
        VARVE_ASSIGN_OR_RETURN(continuation, GoOnBehind(index, std::move(status)));
      }
      for (size_t i = index + 1; i < continuation; ++i)
        result_.obsolete_paths.push_back(files_[i].path);
      index = continuation;
    }
    if (absl::Status status = CheckKnownEnds(); !status.ok()) {
      if (mode_ == Mode::kRecover) return status;
      if (gaps_.empty()) gaps_.push_back({std::move(status), next_, kNoSequence});
    }
    if (mode_ == Mode::kRecover) VARVE_RETURN_IF_ERROR(MakeDurable());
    meter_.End();
    return std::move(result_);
  }

  std::vector<LogGap> TakeGaps() { return std::move(gaps_); }

 private:
  struct Place {
    const FoundFile* file;
    uint64_t offset;
  };

  absl::Status FindFiles();
  // Index of the first file that may hold operations after `flushed_`.
  size_t FirstNeededFile() const;
  // The sizes of files_[index] and those behind it together.
  uint64_t BytesFrom(size_t index) const;
  size_t FileThatBeginsWithNext(size_t from) const;
  absl::Status ReplayFile(const FoundFile& file, uint64_t begin);
  // Whether a block at or behind offset_ goes on where operations that are in segments can't be
  // read; then offset_ and next_ are its.
  absl::StatusOr<bool> SkipFlushed(uint64_t limit);
  // For a survey: notes the gap, and returns the file in which the log goes on, with begin_ and
  // next_ set; files_.size(): nowhere.
  absl::StatusOr<size_t> GoOnBehind(size_t index, absl::Status damage);
  // The first block in [from, limit) of the open file that was surely acknowledged and begins
  // behind `next_`, up to `most`.
  struct ProvenBlock {
    uint64_t offset;
    SequenceNumber first;
  };
  absl::StatusOr<std::optional<ProvenBlock>> FindProvenBlock(uint64_t from, uint64_t limit,
                                                             SequenceNumber most, bool needs_mark);
  // Replays the block at offset_, if it is one and continues the sequence. False: it is not, or is
  // damaged from offset_ on.
  absl::StatusOr<bool> ReplayBlock(const FoundFile& file, uint64_t limit);
  absl::Status ReplayBatch(const FoundFile& file, const BatchHeader& header,
                           std::string_view operations);
  // Looks in what follows offset_ of files_[index] for a sign that operation next_ had been
  // acknowledged.
  absl::Status CheckThatNothingIsMissing(size_t index);
  absl::Status CheckBlocksBehind(const Place& suspect, const FoundFile& file, uint64_t from);
  absl::Status CheckKnownEnds() const;
  // What was read may have been in the kernel's memory alone: a process was killed before it
  // synced, or a sync failed.
  absl::Status MakeDurable();
  absl::Status Open(const FoundFile& file);
  const LogEnd* KnownEnd(uint64_t number) const;

  FileSystem* const file_system_;
  const std::string& directory_;
  const uint64_t store_id_;
  const SequenceNumber flushed_;
  const std::vector<LogEnd>& known_ends_;
  const DeliverBatch& deliver_;
  const Mode mode_;
  const TakeMark on_mark_;
  ReplayMeter meter_;
  std::vector<LogGap> gaps_;
  uint64_t begin_ = kLogPageSize;  // where the next file is read from

  std::vector<FoundFile> files_;  // in order of number
  LogRecovery result_;
  SequenceNumber next_ = 0;              // the operation that must come next
  std::unique_ptr<LogFileReader> open_;  // the file that is being read
  uint64_t offset_ = 0;                  // good up to here
  uint64_t partial_end_ = 0;             // of the block within which it ends, if it does
  SequenceNumber durable_mark_ = 0;      // highest one of the blocks replayed
  // Offset of the first replayed block that no mark covers, by file number.
  std::map<uint64_t, uint64_t> unproven_from_;
};

absl::Status Recovery::FindFiles() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  for (const std::string& name : names) {
    const std::string path = directory_ + "/" + name;
    if (const std::optional<uint64_t> number = ParseLogTemporaryName(name)) {
      result_.obsolete_paths.push_back(path);
      result_.last_file_number = std::max(result_.last_file_number, *number);
    } else if (const std::optional<uint64_t> log_number = ParseLogFileName(name)) {
      files_.push_back({*log_number, path, {}, {}});
      result_.last_file_number = std::max(result_.last_file_number, *log_number);
    }
  }
  std::sort(files_.begin(), files_.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.number < b.number; });
  for (FoundFile& found : files_) {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system_->OpenForRead(found.path));
    std::string front(kLogPageSize + kLogBlockHeaderSize, '\0');
    VARVE_ASSIGN_OR_RETURN(const size_t size, file->Read(0, front.size(), front.data()));
    const std::string_view bytes = std::string_view(front).substr(0, size);
    VARVE_ASSIGN_OR_RETURN(found.size, file->Size());
    found.header =
        CheckLogHeaderPage(bytes.substr(0, kLogPageSize), found.path, found.number, store_id_);
    if (absl::IsFailedPrecondition(found.header)) return found.header;
    if (found.header.ok())
      found.prepared_size = std::max<uint64_t>(kLogPageSize, PreparedLogSize(bytes));
    if (size <= kLogPageSize) continue;
    const auto block =
        DecodeLogBlockHeader(bytes.substr(kLogPageSize), found.number, store_id_, kLogPageSize);
    // A block without operations only says what is durable; the first operation after it is the
    // next one.
    if (block.has_value()) found.first = block->first;
  }
  return absl::OkStatus();
}

size_t Recovery::FirstNeededFile() const {
  size_t index = files_.size();
  while (index > 0 &&
         !(files_[index - 1].first.has_value() && *files_[index - 1].first <= flushed_ + 1))
    --index;
  // Without such a file the log begins later than it should, or nothing in it can be read: begin at
  // the front.
  return index > 0 ? index - 1 : 0;
}

uint64_t Recovery::BytesFrom(size_t index) const {
  uint64_t bytes = 0;
  for (; index < files_.size(); ++index) bytes += files_[index].size;
  return bytes;
}

size_t Recovery::FileThatBeginsWithNext(size_t from) const {
  while (from < files_.size() && files_[from].first != next_) ++from;
  return from;
}

absl::Status Recovery::Open(const FoundFile& found) {
  VARVE_ASSIGN_OR_RETURN(open_,
                         LogFileReader::Open(file_system_, found.path, found.number, store_id_));
  return absl::OkStatus();
}

const LogEnd* Recovery::KnownEnd(uint64_t number) const {
  for (const LogEnd& end : known_ends_) {
    if (end.file_number == number) return &end;
  }
  return nullptr;
}

absl::Status Recovery::ReplayFile(const FoundFile& file, uint64_t begin) {
  VARVE_RETURN_IF_ERROR(Open(file));
  offset_ = std::min<uint64_t>(begin, open_->size());
  partial_end_ = 0;
  // A survey goes on: what the blocks need of the header is known.
  if (absl::IsDataLoss(file.header) && mode_ == Mode::kRecover) return file.header;
  const LogEnd* const known = KnownEnd(file.number);
  const uint64_t limit =
      known != nullptr ? std::min<uint64_t>(known->offset, open_->size()) : open_->size();
  const SequenceNumber before = next_;
  while (offset_ < limit) {
    VARVE_ASSIGN_OR_RETURN(bool good, ReplayBlock(file, limit));
    if (!good && offset_ % kLogPageSize != 0 && LogPageAlign(offset_) <= limit) {
      // After a sync the next block begins with a page.
      const uint64_t end = std::exchange(offset_, LogPageAlign(offset_));
      VARVE_ASSIGN_OR_RETURN(good, ReplayBlock(file, limit));
      if (!good && offset_ == LogPageAlign(end)) offset_ = end;
    }
    if (good) continue;
    VARVE_ASSIGN_OR_RETURN(const bool skipped, SkipFlushed(limit));
    if (!skipped) break;
  }
  if (known != nullptr && known->last_sequence > flushed_ && next_ <= known->last_sequence) {
    return Corruption(file.path, offset_,
                      fmt::format("log block: damaged or missing; the log was good up to offset {} "
                                  "and operation {} when it "
                                  "was last closed, but here operation {} cannot be read",
                                  known->offset, known->last_sequence, next_));
  }
  if (absl::IsDataLoss(file.header) && begin == kLogPageSize)
    gaps_.push_back({file.header, next_, next_ - 1});
  if (next_ > before && next_ - 1 > flushed_) {
    result_.files.push_back({file.number, offset_, next_ - 1});
  } else {
    result_.obsolete_paths.push_back(file.path);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Recovery::ReplayBlock(const FoundFile& file, uint64_t limit) {
  const uint64_t begin = offset_;
  VARVE_ASSIGN_OR_RETURN(const std::optional<LogBlockHeader> block, open_->HeaderAt(begin, limit));
  if (!block.has_value() || block->first != next_) return false;
  if (block->durable_mark > durable_mark_) {
    durable_mark_ = block->durable_mark;
    if (durable_mark_ + 1 >= next_) unproven_from_.clear();
  }
  if (block->last > durable_mark_) unproven_from_.try_emplace(file.number, begin);
  const uint64_t payload_end = begin + kLogBlockHeaderSize + block->payload_size;
  if (payload_end > open_->size() && block->last > flushed_) {
    // A write changes no file's size, so this is no tear.
    return Corruption(file.path, open_->size(), "log: the file ends within a block");
  }
  // Sizes are believed only as far as there are bytes.
  const uint64_t end = std::min<uint64_t>(payload_end, limit);
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, open_->Bytes(begin, end));
  uint64_t position = begin + kLogBlockHeaderSize;
  while (position < end) {
    BatchHeader header;
    std::string_view operations;
    const size_t size = DecodeBatch(bytes.substr(position - begin), &header, &operations);
    if (size == 0 || header.first != next_) break;
    if (header.instant_ms != 0) {
      if (next_ > flushed_) {
        result_.marks.push_back({next_, header.instant_ms});
        if (on_mark_ != nullptr) on_mark_(result_.marks.back());
      }
    } else {
      if (header.count == 0) break;
      VARVE_RETURN_IF_ERROR(ReplayBatch(file, header, operations));
    }
    position += size;
    offset_ = position;
  }
  if (position != payload_end) {
    partial_end_ = std::min<uint64_t>(payload_end, open_->size());
    return false;
  }
  offset_ = LogBlockAlign(position);
  meter_.ReachOffset(offset_);
  return true;
}

absl::StatusOr<std::optional<Recovery::ProvenBlock>> Recovery::FindProvenBlock(uint64_t from,
                                                                               uint64_t limit,
                                                                               SequenceNumber most,
                                                                               bool needs_mark) {
  std::optional<ProvenBlock> found;
  VARVE_RETURN_IF_ERROR(
      open_->VisitHeaders(from, limit, [&](uint64_t offset, const LogBlockHeader& block) {
        if (block.first > most) return false;  // blocks ascend: none is behind it
        if (block.first <= next_) return true;
        // What an earlier recovery cut away was never acknowledged, and knew that `next_` was not.
        if (needs_mark && block.durable_mark < next_) return true;
        found = {offset, block.first};
        return false;
      }));
  return found;
}

absl::StatusOr<bool> Recovery::SkipFlushed(uint64_t limit) {
  if (next_ > flushed_) return false;
  VARVE_ASSIGN_OR_RETURN(const std::optional<ProvenBlock> found,
                         FindProvenBlock(offset_, limit, flushed_ + 1, /*needs_mark=*/true));
  if (!found) return false;
  VARVE_ASSERT(found->first > next_ && found->offset >= offset_);
  offset_ = found->offset;
  next_ = found->first;
  return true;
}

absl::StatusOr<size_t> Recovery::GoOnBehind(size_t index, absl::Status damage) {
  next_ = std::max(next_, flushed_ + 1);
  gaps_.push_back({std::move(damage), next_, kNoSequence});
  for (size_t i = index; i < files_.size(); ++i) {
    const LogEnd* const known = KnownEnd(files_[i].number);
    VARVE_RETURN_IF_ERROR(Open(files_[i]));
    const uint64_t limit =
        known != nullptr ? std::min<uint64_t>(known->offset, open_->size()) : open_->size();
    VARVE_ASSIGN_OR_RETURN(const std::optional<ProvenBlock> found,
                           FindProvenBlock(i == index ? offset_ : kLogPageSize, limit, kMaxSequence,
                                           known == nullptr));
    if (!found) continue;
    begin_ = found->offset;
    next_ = found->first;
    gaps_.back().last = next_ - 1;
    return i;
  }
  return files_.size();
}

absl::Status Recovery::ReplayBatch(const FoundFile& file, const BatchHeader& header,
                                   std::string_view operations) {
  VARVE_ASSERT(header.first == next_ && header.count > 0);
  const SequenceNumber last = header.first + header.count - 1;
  if (last > flushed_) {
    if (const absl::Status status = deliver_(operations, header.first, header.count);
        !status.ok()) {
      return absl::Status(status.code(),
                          fmt::format("replaying the batch at offset {} of {}: {}", offset_,
                                      file.path, std::string(status.message())));
    }
    result_.last_sequence = last;
  }
  next_ = last + 1;
  return absl::OkStatus();
}

absl::Status Recovery::CheckThatNothingIsMissing(size_t index) {
  const bool ends_as_known = KnownEnd(files_[index].number) != nullptr;
  Place suspect = {&files_[index], offset_};
  // Behind an end that an earlier recovery chose lies what it cut away; what is missing then should
  // begin the next file.
  if (!ends_as_known) VARVE_RETURN_IF_ERROR(CheckBlocksBehind(suspect, files_[index], offset_));
  for (size_t i = index + 1; i < files_.size(); ++i) {
    const bool begins_well = files_[i].first.has_value() && !IsTruncated(files_[i]);
    if ((ends_as_known && i == index + 1) || (!begins_well && suspect.file == &files_[index])) {
      suspect = {&files_[i], std::min<uint64_t>(kLogPageSize, files_[i].size)};
    }
    VARVE_RETURN_IF_ERROR(Open(files_[i]));
    VARVE_RETURN_IF_ERROR(CheckBlocksBehind(suspect, files_[i], kLogPageSize));
  }
  // A file has its whole size before it has its name.
  for (size_t i = ends_as_known ? index + 1 : index; i < files_.size(); ++i) {
    const FoundFile& file = files_[i];
    if (!IsTruncated(file) || KnownEnd(file.number) != nullptr) continue;
    return Corruption(
        file.path, file.size,
        fmt::format(
            "log: the file ends here, but was made with {} bytes or more; whether operation {} and "
            "later ones had been acknowledged can't be told",
            file.prepared_size, next_));
  }
  return absl::OkStatus();
}

absl::Status Recovery::CheckBlocksBehind(const Place& suspect, const FoundFile& file,
                                         uint64_t from) {
  const SequenceNumber missing = std::max(next_, flushed_ + 1);
  uint64_t torn_end = from;
  if (partial_end_ > from && suspect.file == &file) {
    result_.torn_path = file.path;
    result_.torn_offset = from;
    torn_end = partial_end_;
  }
  absl::Status lost;
  VARVE_RETURN_IF_ERROR(
      open_->VisitHeaders(from, open_->size(), [&](uint64_t offset, const LogBlockHeader& block) {
        if (block.durable_mark >= missing) {
          lost = Corruption(suspect.file->path, suspect.offset,
                            fmt::format("log block: damaged or missing from operation {} on, which "
                                        "had been acknowledged as the "
                                        "block at offset {} of {} says",
                                        missing, offset, file.path));
          return false;
        }
        if (result_.torn_path.empty()) {
          result_.torn_path = suspect.file->path;
          result_.torn_offset = suspect.offset;
        }
        torn_end = std::max(
            torn_end,
            std::min<uint64_t>(offset + kLogBlockHeaderSize + block.payload_size, open_->size()));
        return true;
      }));
  result_.torn_bytes += torn_end - from;
  return lost;
}

absl::Status Recovery::CheckKnownEnds() const {
  for (const LogEnd& end : known_ends_) {
    if (end.last_sequence <= result_.last_sequence) continue;
    return Corruption(directory_ + "/" + LogFileName(end.file_number), end.offset,
                      fmt::format("log: held operations up to {} when it was closed, but they end "
                                  "at {}; a log file is missing",
                                  end.last_sequence, result_.last_sequence));
  }
  return absl::OkStatus();
}

// The blocks behind the highest durable mark are written once more, with the bytes they hold,
// before they are synced: after a failed sync the kernel takes pages for clean that never reached
// the disk, and a sync alone would not write them.
absl::Status Recovery::MakeDurable() {
  for (const LogEnd& end : result_.files) {
    const LogEnd* const known = KnownEnd(end.file_number);
    // An earlier recovery or a clean stop saw to it.
    if (known != nullptr && known->offset == end.offset) continue;
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system_->OpenForWrite(
                               directory_ + "/" + LogFileName(end.file_number), /*create=*/false));
    if (const auto from = unproven_from_.find(end.file_number);
        from != unproven_from_.end() && from->second < end.offset) {
      FileWindow window(*file);
      for (uint64_t offset = from->second; offset < end.offset;) {
        VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, window.Bytes(offset, 1, end.offset));
        if (bytes.empty()) break;
        VARVE_RETURN_IF_ERROR(file->Write(offset, bytes));
        offset += bytes.size();
      }
    }
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogRecovery> RecoverLog(FileSystem* file_system, const std::string& directory,
                                       uint64_t store_id, SequenceNumber flushed,
                                       const std::vector<LogEnd>& known_ends,
                                       const DeliverBatch& deliver, const ReplayListener& on_replay,
                                       const TakeMark& on_mark) {
  return Recovery(file_system, directory, store_id, flushed, known_ends, deliver, Mode::kRecover,
                  on_replay, on_mark)
      .Run();
}

absl::StatusOr<LogSurvey> SurveyLog(FileSystem* file_system, const std::string& directory,
                                    uint64_t store_id, SequenceNumber flushed,
                                    const std::vector<LogEnd>& known_ends,
                                    const DeliverBatch& deliver) {
  Recovery survey(file_system, directory, store_id, flushed, known_ends, deliver, Mode::kSurvey);
  VARVE_ASSIGN_OR_RETURN(LogRecovery recovery, survey.Run());
  return LogSurvey{std::move(recovery), survey.TakeGaps()};
}

}  // namespace varve
