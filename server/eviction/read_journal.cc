#include "server/eviction/read_journal.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/eviction/key_rank.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr uint32_t kMagic = 0x64616572;  // "read"
constexpr size_t kChecked = 4 + 4;       // where the bytes under the checksum begin
constexpr size_t kHeaderSize = kChecked + 8 + 8 + 4, kReadSize = 8 + 4 + 4;
constexpr int kLeastUsesShift = 24;
constexpr uint64_t kSeed = 0x7661727665726a31;
constexpr size_t kKeptBuffer = 256u << 10;  // bytes
// What waits is entered once it takes this part of its bound, the files this many bytes, or it has
// waited for so long.
constexpr size_t kDueNumerator = 3, kDueDenominator = 4;
constexpr uint64_t kDueFile = uint64_t{8} << 20;
constexpr absl::Duration kDueAfter = absl::Seconds(4);

// Reads that were taken together.
struct ReadChunk {
  uint64_t order = 0;
  uint64_t instant_ms = 0;     // none of the reads is newer
  std::vector<Touch> touches;  // ascending by namespace and hash
};

template <typename A, typename B>
bool IsBefore(const A& a, const B& b) {
  return std::tie(a.space, a.hash) < std::tie(b.space, b.hash);
}

// Returns the reads of a key; null: there are none.
const WaitingRead* Find(const std::vector<WaitingRead>& reads, NamespaceId space, uint64_t hash) {
  const Touch key{hash, space, 0, 0};
  const auto found =
      std::lower_bound(reads.begin(), reads.end(), key, IsBefore<WaitingRead, Touch>);
  return found != reads.end() && found->space == space && found->hash == hash ? &*found : nullptr;
}

uint64_t CountReads(const std::vector<Touch>& touches) {
  uint64_t reads = 0;
  for (const Touch& touch : touches) reads += touch.count;
  return reads;
}

void Encode(const ReadChunk& chunk, std::string* bytes) {
  bytes->resize(kHeaderSize + chunk.touches.size() * kReadSize);
  char* at = bytes->data();
  EncodeFixed32(at, kMagic);
  EncodeFixed64(at + 8, chunk.order);
  EncodeFixed64(at + 16, chunk.instant_ms);
  EncodeFixed32(at + 24, static_cast<uint32_t>(chunk.touches.size()));
  at += kHeaderSize;
  for (const Touch& touch : chunk.touches) {
    EncodeFixed64(at, touch.hash);
    EncodeFixed32(at + 8, touch.space);
    EncodeFixed32(at + 12, touch.count | uint32_t{touch.least_uses} << kLeastUsesShift);
    at += kReadSize;
  }
  EncodeFixed32(bytes->data() + 4, Checksum(std::string_view(*bytes).substr(kChecked), kSeed));
}

// Returns how many bytes the chunk takes whose header this is; 0: it is none.
uint64_t SizeOfChunk(std::string_view header) {
  if (header.size() < kHeaderSize || DecodeFixed32(header.data()) != kMagic) return 0;
  return kHeaderSize + uint64_t{DecodeFixed32(header.data() + 24)} * kReadSize;
}

// Requires: `bytes` have the size that the header says.
bool Decode(std::string_view bytes, ReadChunk* chunk) {
  if (DecodeFixed32(bytes.data() + 4) != Checksum(bytes.substr(kChecked), kSeed)) return false;
  chunk->order = DecodeFixed64(bytes.data() + 8);
  chunk->instant_ms = DecodeFixed64(bytes.data() + 16);
  chunk->touches.resize((bytes.size() - kHeaderSize) / kReadSize);
  const char* at = bytes.data() + kHeaderSize;
  for (Touch& touch : chunk->touches) {
    const uint32_t uses = DecodeFixed32(at + 12);
    const uint32_t count = uses & ((1u << kLeastUsesShift) - 1);
    touch = {DecodeFixed64(at), DecodeFixed32(at + 8),
             static_cast<uint16_t>(std::min<uint32_t>(count, Touch::kMostCount)),
             static_cast<uint8_t>(uses >> kLeastUsesShift)};
    at += kReadSize;
  }
  return true;
}

// Reads the chunks of a file one by one, so that a long file takes no more memory than its largest
// chunk.
class ChunkReader {
 public:
  // Requires: the file has `size` bytes, and outlives the reader.
  ChunkReader(const File* file, uint64_t size) : file_(*file), file_size_(size) {}

  // Moves on to the next chunk. Returns false behind the last one that is whole and good.
  absl::StatusOr<bool> Next() {
    VARVE_RETURN_IF_ERROR(Read(kHeaderSize));
    const uint64_t size = SizeOfChunk(bytes_);
    if (size == 0 || size > file_size_ - end_) return false;
    VARVE_RETURN_IF_ERROR(Read(size));
    if (bytes_.size() < size || !Decode(bytes_, &chunk_)) return false;
    end_ += size;
    return true;
  }
  const ReadChunk& chunk() const { return chunk_; }
  // Returns where in the file the chunk ends; 0 in front of the first one.
  uint64_t end() const { return end_; }
  bool is_at_end_of_file() const { return end_ == file_size_; }

 private:
  absl::Status Read(uint64_t size) {
    bytes_.resize(size);
    VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(end_, size, bytes_.data()));
    bytes_.resize(read);
    return absl::OkStatus();
  }

  const File& file_;
  const uint64_t file_size_;
  std::string bytes_;
  ReadChunk chunk_;
  uint64_t end_ = 0;
};

}  // namespace

KeyAccess WaitingRead::After(const KeyAccess& before) const {
  uint64_t random = ((hash ^ instant_ms) * 0x9e3779b97f4a7c15) | 1;
  return AfterReads(before, {count, least_uses}, instant_ms, &random);
}

absl::StatusOr<std::unique_ptr<ReadJournal>> ReadJournal::Open(const std::string& directory,
                                                               FileSystem* files, NotedReads* noted,
                                                               std::function<uint64_t()> now_ms,
                                                               size_t most_waiting) {
  std::unique_ptr<ReadJournal> journal(new ReadJournal(noted, std::move(now_ms), most_waiting));
  VARVE_RETURN_IF_ERROR(journal->Recover(directory, files));
  return journal;
}

absl::Status ReadJournal::Recover(const std::string& directory, FileSystem* files) {
  absl::MutexLock file_lock(&file_mutex_);
  std::vector<ChunkReader> readers;
  std::array<bool, kFiles> has_chunk = {};
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string path = directory + "/reads-" + std::to_string(i);
    absl::StatusOr<std::unique_ptr<File>> opened = files->OpenForWrite(path, /*create=*/false);
    if (absl::IsNotFound(opened.status())) opened = files->OpenForWrite(path, /*create=*/true);
    VARVE_RETURN_IF_ERROR(opened.status());
    files_[i].file = *std::move(opened);
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, files_[i].file->Size());
    readers.emplace_back(files_[i].file.get(), size);
    VARVE_ASSIGN_OR_RETURN(has_chunk[i], readers[i].Next());
  }
  while (has_chunk[0] || has_chunk[1]) {
    const bool is_older =
        has_chunk[1] && (!has_chunk[0] || readers[1].chunk().order < readers[0].chunk().order);
    const size_t next = is_older ? 1 : 0;
    const ReadChunk& chunk = readers[next].chunk();
    files_[next].last_order = chunk.order;
    last_order_ = std::max(last_order_, chunk.order);
    {
      absl::MutexLock lock(&mutex_);
      AddLocked(chunk.touches, chunk.instant_ms);
    }
    taken_.fetch_add(chunk.touches.size(), std::memory_order_relaxed);
    VARVE_ASSIGN_OR_RETURN(has_chunk[next], readers[next].Next());
  }
  for (size_t i = 0; i < kFiles; ++i) {
    files_[i].size = readers[i].end();
    if (readers[i].is_at_end_of_file()) continue;
    // What lies behind would be taken for chunks again once a new one ends where it begins.
    VARVE_RETURN_IF_ERROR(files_[i].file->Truncate(files_[i].size));
  }
  active_ = files_[1].last_order > files_[0].last_order ? 1 : 0;
  return absl::OkStatus();
}

void ReadJournal::StartThread() {
  absl::MutexLock lock(&wake_mutex_);
  VARVE_ASSERT(!thread_.joinable());
  try {
    thread_ = std::thread([this] {
      NameThread("varve-reads");
      Loop();
    });
  } catch (const std::system_error& failed) {
    // The evictor takes the reads all the same.
    spdlog::warn("The system gives no thread for noted reads: {}", failed.what());
  }
}

void ReadJournal::Stop() {
  std::thread thread;
  {
    absl::MutexLock lock(&wake_mutex_);
    if (std::exchange(is_stopped_, true)) return;
    wake_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
  GuardMemory("noting reads", [this] { return TakeReads(); }).IgnoreError();  // nobody is told
}

void ReadJournal::Loop() {
  bool has_failed = false;
  for (SteadyTime next = SteadyNow();;) {
    next = std::max(next + absl::FromChrono(kRound), SteadyNow());
    {
      absl::MutexLock lock(&wake_mutex_);
      while (!is_stopped_) {
        if (wake_.WaitWithDeadline(&wake_mutex_, next)) break;
      }
      if (is_stopped_) return;
    }
    const absl::Status taken = GuardMemory("noting reads", [this] { return TakeReads(); });
    if (!taken.ok() && !has_failed)
      spdlog::warn("Reads are lost if the server is killed: {}", taken.ToString());
    has_failed = !taken.ok();
  }
}

// Behind the end of what waits first, and then merged; of a key that waits already the newer
// instant counts. Without memory nothing is changed.
void ReadJournal::AddLocked(absl::Span<const Touch> touches, uint64_t instant_ms) {
  mutex_.AssertHeld();
  if (touches.empty()) return;
  const auto before = static_cast<ptrdiff_t>(waiting_.size());
  std::vector<WaitingRead> fresh;
  auto known = waiting_.begin();
  const auto waits = [&](const Touch& touch) {
    mutex_.AssertHeld();
    while (known != waiting_.end() && IsBefore(*known, touch)) ++known;
    return known != waiting_.end() && !IsBefore(touch, *known);
  };
  for (const Touch& touch : touches) {
    if (!waits(touch))
      fresh.push_back({touch.hash, instant_ms, touch.space, touch.count, touch.least_uses});
  }
  ReserveMore(&waiting_, fresh.size());
  if (waiting_.empty()) waits_since_ = SteadyNow();
  known = waiting_.begin();
  for (const Touch& touch : touches) {
    if (!waits(touch)) continue;
    known->instant_ms = instant_ms;
    known->count = static_cast<uint16_t>(
        std::min<uint32_t>(uint32_t{known->count} + touch.count, Touch::kMostCount));
    known->least_uses = std::max(known->least_uses, touch.least_uses);
  }
  waiting_.insert(waiting_.end(), fresh.begin(), fresh.end());
  std::inplace_merge(waiting_.begin(), waiting_.begin() + before, waiting_.end(),
                     IsBefore<WaitingRead, WaitingRead>);
}

bool ReadJournal::Take(uint64_t* instant_ms, std::vector<Touch>* touches) {
  absl::MutexLock lock(&mutex_);
  const bool is_full = waiting_.size() > most_waiting_;
  if (is_full && ++refusals_ < kMostRefusals) return false;
  refusals_ = 0;
  // With() must find the reads here or there at any time, so the lock stays.
  *touches = noted_.Take();
  if (touches->empty()) return false;
  absl::Cleanup lose = [&] { noted_.NoteDropped(CountReads(*touches)); };  // for want of memory
  std::sort(touches->begin(), touches->end(), IsBefore<Touch, Touch>);
  if (is_full) DropOthersLocked(touches);
  *instant_ms = now_ms_();
  AddLocked(*touches, *instant_ms);
  std::move(lose).Cancel();
  return !touches->empty();
}

void ReadJournal::DropOthersLocked(std::vector<Touch>* touches) {
  uint64_t dropped = 0;
  std::erase_if(*touches, [&](const Touch& touch) {
    mutex_.AssertHeld();
    if (Find(waiting_, touch.space, touch.hash) != nullptr) return false;
    dropped += touch.count;
    return true;
  });
  noted_.NoteDropped(dropped);
}

absl::Status ReadJournal::TakeReads() {
  absl::MutexLock file_lock(&file_mutex_);
  ReadChunk chunk;
  if (!Take(&chunk.instant_ms, &chunk.touches)) return absl::OkStatus();
  chunk.order = ++last_order_;
  JournalFile& active = files_[active_];
  Encode(chunk, &encoded_);
  VARVE_RETURN_IF_ERROR(active.file->Write(active.size, encoded_));
  taken_.fetch_add(chunk.touches.size(), std::memory_order_release);
  active.size += encoded_.size();
  active.last_order = chunk.order;
  if (encoded_.capacity() > kKeptBuffer) std::string().swap(encoded_);
  return absl::OkStatus();
}

KeyAccess ReadJournal::With(const KeyAccess& stored, NamespaceId space, uint64_t hash) const {
  KeyAccess access = stored;
  absl::MutexLock lock(&mutex_);
  const Touch noted = noted_.Find(space, hash);
  for (const std::vector<WaitingRead>* const reads : {&entering_, &waiting_}) {
    if (const WaitingRead* const read = Find(*reads, space, hash)) access = read->After(access);
  }
  if (noted.count == 0) return access;
  return WaitingRead{hash, now_ms_(), space, noted.count, noted.least_uses}.After(access);
}

bool ReadJournal::IsDue() const {
  {
    absl::MutexLock file_lock(&file_mutex_);
    if (files_[0].size + files_[1].size >= kDueFile) return true;
  }
  absl::MutexLock lock(&mutex_);
  return waiting_.size() >= most_waiting_ / kDueDenominator * kDueNumerator ||
         (!waiting_.empty() && SteadyNow() >= waits_since_ + kDueAfter);
}

const std::vector<WaitingRead>& ReadJournal::BeginEntering() {
  absl::MutexLock file_lock(&file_mutex_);
  entering_order_ = last_order_;
  // If the other file is empty this one is not written any more, and empty once all is entered.
  if (files_[1 - active_].size == 0) active_ = 1 - active_;
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(entering_.empty());
  entering_.swap(waiting_);
  return entering_;
}

absl::Status ReadJournal::EndEntering() {
  absl::MutexLock file_lock(&file_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    std::vector<WaitingRead>().swap(entering_);
  }
  for (JournalFile& file : files_) {
    if (file.size == 0 || file.last_order > entering_order_) continue;
    VARVE_RETURN_IF_ERROR(file.file->Truncate(0));
    file.size = 0;
  }
  return absl::OkStatus();
}

}  // namespace varve
