#include "server/eviction/read_journal.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

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
constexpr uint64_t kSeed = 0x7661727665726a31;
constexpr size_t kKeptBuffer = 256u << 10;  // bytes
constexpr uint64_t kMostFile = uint64_t{64} << 20;

bool IsBefore(const Touch& a, const Touch& b) {
  return std::tie(a.space, a.hash) < std::tie(b.space, b.hash);
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
    EncodeFixed32(at + 12, touch.count);
    at += kReadSize;
  }
  EncodeFixed32(bytes->data() + 4, Checksum(std::string_view(*bytes).substr(kChecked), kSeed));
}

// Decodes the chunk at the beginning of `bytes`, and returns how many of them it takes; 0: there is
// no whole chunk.
size_t Decode(std::string_view bytes, ReadChunk* chunk) {
  if (bytes.size() < kHeaderSize || DecodeFixed32(bytes.data()) != kMagic) return 0;
  const uint64_t reads = DecodeFixed32(bytes.data() + 24);
  const uint64_t size = kHeaderSize + reads * kReadSize;
  if (size > bytes.size() ||
      DecodeFixed32(bytes.data() + 4) != Checksum(bytes.substr(kChecked, size - kChecked), kSeed))
    return 0;
  chunk->order = DecodeFixed64(bytes.data() + 8);
  chunk->instant_ms = DecodeFixed64(bytes.data() + 16);
  chunk->touches.resize(reads);
  const char* at = bytes.data() + kHeaderSize;
  for (Touch& touch : chunk->touches) {
    touch = {DecodeFixed64(at), DecodeFixed32(at + 8), DecodeFixed32(at + 12)};
    at += kReadSize;
  }
  return size;
}

absl::StatusOr<std::string> ReadAll(const File& file) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::string bytes(std::min(size, kMostFile), '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(0, bytes.size(), bytes.data()));
  bytes.resize(read);
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReadJournal>> ReadJournal::Open(const std::string& directory,
                                                               FileSystem* files, NotedReads* noted,
                                                               std::function<uint64_t()> now_ms) {
  std::unique_ptr<ReadJournal> journal(new ReadJournal(noted, std::move(now_ms)));
  for (size_t i = 0; i < kFiles; ++i) {
    JournalFile opened;
    VARVE_RETURN_IF_ERROR(
        journal->Recover(directory + "/reads-" + std::to_string(i), files, &opened));
    absl::MutexLock file_lock(&journal->file_mutex_);
    journal->files_[i] = std::move(opened);
  }
  absl::MutexLock lock(&journal->mutex_);
  std::sort(journal->chunks_.begin(), journal->chunks_.end(),
            [](const auto& a, const auto& b) { return a->order < b->order; });
  return journal;
}

absl::Status ReadJournal::Recover(const std::string& path, FileSystem* files,
                                  JournalFile* journal) {
  absl::StatusOr<std::unique_ptr<File>> opened = files->OpenForWrite(path, /*create=*/false);
  if (absl::IsNotFound(opened.status())) opened = files->OpenForWrite(path, /*create=*/true);
  VARVE_RETURN_IF_ERROR(opened.status());
  journal->file = *std::move(opened);
  VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(*journal->file));
  absl::MutexLock lock(&mutex_);
  for (;;) {
    auto chunk = std::make_shared<ReadChunk>();
    const size_t size = Decode(std::string_view(bytes).substr(journal->size), chunk.get());
    if (size == 0) return absl::OkStatus();
    journal->size += size;
    journal->last_order = chunk->order;
    last_order_ = std::max(last_order_, chunk->order);
    waiting_ += chunk->touches.size();
    chunks_.push_back(std::move(chunk));
  }
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

std::shared_ptr<const ReadChunk> ReadJournal::Take() {
  auto chunk = std::make_shared<ReadChunk>();
  {
    absl::MutexLock lock(&mutex_);
    if (waiting_ > kMostWaiting) return nullptr;
    // Contains() must find the reads here or there at any time, so the lock stays.
    chunk->touches = noted_.Take();
    if (chunk->touches.empty()) return nullptr;
    std::sort(chunk->touches.begin(), chunk->touches.end(), IsBefore);
    chunk->instant_ms = now_ms_();
    chunk->order = ++last_order_;
    waiting_ += chunk->touches.size();
    chunks_.push_back(chunk);
  }
  return chunk;
}

absl::Status ReadJournal::TakeReads() {
  absl::MutexLock file_lock(&file_mutex_);
  const std::shared_ptr<const ReadChunk> chunk = Take();
  if (chunk == nullptr) return absl::OkStatus();
  // The other file is as good once it is empty, and then this one is not written any more.
  if (files_[active_].size != 0 && files_[1 - active_].size == 0) active_ = 1 - active_;
  JournalFile& active = files_[active_];
  Encode(*chunk, &encoded_);
  VARVE_RETURN_IF_ERROR(active.file->Write(active.size, encoded_));
  active.size += encoded_.size();
  active.last_order = chunk->order;
  if (encoded_.capacity() > kKeptBuffer) std::string().swap(encoded_);
  return absl::OkStatus();
}

std::vector<std::shared_ptr<const ReadChunk>> ReadJournal::Waiting() const {
  absl::MutexLock lock(&mutex_);
  return chunks_;
}

absl::Status ReadJournal::Forget(uint64_t order) {
  {
    absl::MutexLock lock(&mutex_);
    const auto end = std::find_if(chunks_.begin(), chunks_.end(),
                                  [order](const auto& chunk) { return chunk->order > order; });
    for (auto chunk = chunks_.begin(); chunk != end; ++chunk) waiting_ -= (*chunk)->touches.size();
    chunks_.erase(chunks_.begin(), end);
  }
  absl::MutexLock file_lock(&file_mutex_);
  for (JournalFile& file : files_) {
    if (file.size == 0 || file.last_order > order) continue;
    VARVE_RETURN_IF_ERROR(file.file->Truncate(0));
    file.size = 0;
  }
  return absl::OkStatus();
}

bool ReadJournal::Contains(NamespaceId space, uint64_t hash) const {
  absl::MutexLock lock(&mutex_);
  if (noted_.Contains(space, hash)) return true;
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& chunk) {
    return std::binary_search(chunk->touches.begin(), chunk->touches.end(), Touch{hash, space, 0},
                              IsBefore);
  });
}

}  // namespace varve
