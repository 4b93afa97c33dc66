#include "db/values/value_file.h"

#include <algorithm>
#include <utility>

#include "db/compression/value_codec.h"
#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/disk_wait.h"
#include "util/os/file_remover.h"

namespace varve {
namespace {

constexpr size_t kMostReports = 64;  // of one file: where everything is damaged, these will do

}  // namespace

std::string_view DamageOfValue(std::string_view bytes, const ValueHandle& handle,
                               std::string_view user_key, SequenceNumber sequence,
                               RecordView* record) {
  if (bytes.size() < handle.operation_size) return "value: the file ends in it";
  if (DecodeLargeOperation(bytes, record) != handle.operation_size)
    return "value: wrong checksum or size";
  // A record that a clone reads in its parent has the parent's generation.
  if (record->sequence != sequence || UserKeyOf(record->key) != user_key)
    return "value: that of another write";
  if (ValueSizeOf(*record) != handle.value_size) return "value: of another size";
  return {};
}

std::string_view DecompressOperation(RecordView* record, std::string* buffer) {
  if (!IsCompressed(*record)) return {};
  CompressedValue value;
  if (!ParseCompressedValue(record->value, &value)) return "value: it can't be decompressed";
  if (buffer->size() < value.plain_size) buffer->resize(value.plain_size);
  if (!DecompressValue(value, nullptr, buffer->data())) return "value: it can't be decompressed";
  record->value = std::string_view(*buffer).substr(0, value.plain_size);
  record->flags &= static_cast<uint8_t>(~kCompressed);
  return {};
}

ValueFile::ValueFile(ValueFiles* registry, FileSystem* file_system, std::string directory,
                     uint64_t number)
    : registry_(registry),
      file_system_(file_system),
      directory_(std::move(directory)),
      number_(number) {}

ValueFile::~ValueFile() {
  registry_->Forget(number_);
  FileRemover* const remover = remover_.load(std::memory_order_acquire);
  if (remover == nullptr || is_of_log()) return;
  // If there is no memory for the removal, the next opening of the store finds the file.
  TryWithMemory([&] {
    remover->Remove(ValueFilePath(directory_, number_),
                    is_damaged() ? FileRemover::Reuse::kNever : FileRemover::Reuse::kAllowed);
  });
}

absl::StatusOr<const File*> ValueFile::Open() {
  if (const File* file = open_.load(std::memory_order_acquire); file != nullptr) return file;
  const DiskWait wait;
  absl::MutexLock lock(&mutex_);
  if (file_ != nullptr) return file_.get();
  // LeaveLog may give the file its other name at this moment.
  const std::string own = ValueFilePath(directory_, number_);
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(own);
  if (absl::IsNotFound(file.status()))
    file = file_system_->OpenForRead(directory_ + "/" + LogFileName(number_));
  if (absl::IsNotFound(file.status())) file = file_system_->OpenForRead(own);
  if (absl::IsNotFound(file.status())) return Corruption(own, 0, "value file: missing");
  VARVE_RETURN_IF_ERROR(file.status());
  VARVE_ASSERT(open_.load(std::memory_order_relaxed) == nullptr);
  file_ = *std::move(file);
  open_.store(file_.get(), std::memory_order_release);
  return file_.get();
}

absl::StatusOr<size_t> ValueFile::Read(uint64_t offset, size_t size, char* buffer) {
  VARVE_ASSIGN_OR_RETURN(const File* file, Open());
  const DiskWait wait;
  return file->Read(offset, size, buffer);
}

absl::Status ValueFile::ReadOperation(const ValueHandle& handle, std::string_view user_key,
                                      SequenceNumber sequence, std::string* bytes,
                                      RecordView* record) {
  VARVE_RETURN_IF_ERROR(ReadStoredOperation(handle, user_key, sequence, bytes, record));
  if (!IsCompressed(*record)) return absl::OkStatus();
  // The plain value takes the place behind the operation, which the longer string may move.
  std::string plain;
  if (const std::string_view damage = DecompressOperation(record, &plain); !damage.empty())
    return Damaged(handle.offset, damage);
  const size_t size = record->value.size();
  bytes->resize(handle.operation_size);
  bytes->append(plain, 0, size);
  ParseLargeOperation(*bytes, record);
  record->value = std::string_view(*bytes).substr(handle.operation_size);
  record->flags &= static_cast<uint8_t>(~kCompressed);
  return absl::OkStatus();
}

absl::Status ValueFile::ReadStoredOperation(const ValueHandle& handle, std::string_view user_key,
                                            SequenceNumber sequence, std::string* bytes,
                                            RecordView* record) {
  if (bytes->size() < handle.operation_size) bytes->resize(handle.operation_size);
  const absl::StatusOr<size_t> read = Read(handle.offset, handle.operation_size, bytes->data());
  if (absl::IsDataLoss(read.status()) || absl::IsInternal(read.status()))
    return NoteDamage(read.status());
  VARVE_RETURN_IF_ERROR(read.status());
  const std::string_view whole = std::string_view(*bytes).substr(0, *read);
  const std::string_view damage = DamageOfValue(whole, handle, user_key, sequence, record);
  return damage.empty() ? absl::OkStatus() : Damaged(handle.offset, damage);
}

absl::Status ValueFile::Damaged(uint64_t offset, std::string_view what) {
  const std::string path =
      is_of_log() ? directory_ + "/" + LogFileName(number_) : ValueFilePath(directory_, number_);
  return NoteDamage(Corruption(path, offset, what));
}

absl::Status ValueFile::NoteDamage(absl::Status error) {
  is_damaged_.store(true, std::memory_order_relaxed);
  TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    const std::string message(error.message().data(), error.message().size());
    if (reported_.size() >= kMostReports ||
        std::count(reported_.begin(), reported_.end(), message) > 0)
      return;
    reported_.push_back(message);
    spdlog::error("{}; other keys stay readable", message);
  });
  return error;
}

uint64_t ValueFile::Size() {
  if (is_of_log()) return 0;
  uint64_t size = size_.load(std::memory_order_relaxed);
  if (size != 0) return size;
  const absl::StatusOr<const File*> file = Open();
  if (!file.ok()) return 0;
  const absl::StatusOr<uint64_t> found = (*file)->Size();
  if (!found.ok()) return 0;
  size_.store(*found, std::memory_order_relaxed);
  return *found;
}

void ValueFile::TakeOver(uint64_t size) {
  size_.store(size, std::memory_order_relaxed);
  is_of_log_.store(false, std::memory_order_release);
}

absl::Status ValueFile::LeaveLog(uint64_t end) {
  VARVE_ASSERT(is_of_log());
  const std::string path = ValueFilePath(directory_, number_);
  VARVE_RETURN_IF_ERROR(file_system_->Rename(directory_ + "/" + LogFileName(number_), path));
  // Once the new name is on disk, recovery no longer takes the file for a log file; only then may
  // the file be shortened.
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(directory_));
  if (end != 0) {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system_->OpenForWrite(path, /*create=*/false));
    VARVE_RETURN_IF_ERROR(file->Truncate(end));
  }
  TakeOver(end);
  return absl::OkStatus();
}

std::shared_ptr<ValueFile> ValueFiles::Acquire(FileSystem* file_system,
                                               const std::string& directory, uint64_t number) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<ValueFile>& entry = files_[number];
  std::shared_ptr<ValueFile> file = entry.lock();
  if (file == nullptr)
    entry = file = std::make_shared<ValueFile>(this, file_system, directory, number);
  VARVE_ASSERT(file->number() == number);
  return file;
}

std::shared_ptr<ValueFile> ValueFiles::Find(uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(number);
  return found == files_.end() ? nullptr : found->second.lock();
}

void ValueFiles::Forget(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(number);
  if (found != files_.end() && found->second.expired()) files_.erase(found);
}

}  // namespace varve
