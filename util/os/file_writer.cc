#include "util/os/file_writer.h"

#include <utility>

#include "util/base/assert.h"
#include "util/base/kept_buffer.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(FileSystem* file_system,
                                                               const std::string& path,
                                                               SpareFiles* spares,
                                                               uint64_t expected_size) {
  // What needs memory comes before the file is there.
  std::unique_ptr<FileWriter> writer(new FileWriter(file_system, path));
  if (spares != nullptr) {
    SpareFiles::Taken taken = spares->Take(path, expected_size);
    if (taken.file != nullptr) {
      writer->file_ = std::move(taken.file);
      writer->spares_ = spares;
      writer->old_size_ = taken.old_size;
      return writer;
    }
  }
  VARVE_ASSIGN_OR_RETURN(writer->file_, file_system->OpenForWrite(path, /*create=*/true));
  return writer;
}

FileWriter::FileWriter(FileSystem* file_system, std::string path)
    : file_system_(file_system), path_(std::move(path)) {
  buffer_.reserve(kStep + kPage);
}

FileWriter::~FileWriter() {
  if (file_ != nullptr && !kept_) RemoveFile(file_system_, path_);
  IsClean();
}

void FileWriter::IsClean() {
  if (spares_ != nullptr) spares_->IsClean();
  spares_ = nullptr;
}

absl::Status FileWriter::Write(std::string_view bytes) {
  if (!status_.ok() || bytes.empty()) return status_;
  VARVE_ASSERT(file_ != nullptr && !kept_);
  status_ = file_->Write(written_, bytes);
  if (!status_.ok()) return status_;
  const uint64_t begin = written_ / kPage * kPage;
  written_ += bytes.size();
  const uint64_t end = written_ / kPage * kPage;
  if (end > begin) file_->StartWriteback(begin, end - begin);
  return absl::OkStatus();
}

absl::Status FileWriter::WritePages() {
  VARVE_ASSERT(size() / kPage * kPage >= written_);
  const size_t whole = static_cast<size_t>(size() / kPage * kPage - written_);
  VARVE_RETURN_IF_ERROR(Write(std::string_view(buffer_).substr(0, whole)));
  if (buffer_.capacity() <= kMostKeptBuffer) {
    buffer_.erase(0, whole);
  } else {
    std::string rest;
    rest.reserve(kStep + kPage);
    rest.assign(buffer_, whole);
    buffer_ = std::move(rest);
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Append(std::string_view bytes) {
  VARVE_RETURN_IF_ERROR(Write(buffer_));
  buffer_.clear();
  return Write(bytes);
}

absl::Status FileWriter::Finish() {
  VARVE_RETURN_IF_ERROR(Append({}));
  status_ = End();
  if (status_.ok()) IsClean();
  return status_;
}

absl::Status FileWriter::End() {
  if (old_size_ > written_)
    VARVE_RETURN_IF_ERROR(SpareFiles::CutDown(file_.get(), old_size_, written_));
  return file_->Sync();
}

}  // namespace varve
