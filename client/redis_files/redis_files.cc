#include "client/redis_files/redis_files.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestSuffix = ".manifest";
constexpr size_t kLongestManifestLine = 4096;
constexpr size_t kMagicSize = 6;  // of the longest beginning by which an RDB is known

// The manifest in the directory; NotFound: none or several.
absl::StatusOr<std::string> FindManifest(const fs::path& directory) {
  std::vector<std::string> manifests;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().string().ends_with(kManifestSuffix))
      manifests.push_back(entry.path().string());
  }
  if (manifests.empty() && fs::is_directory(directory / "appendonlydir"))
    return FindManifest(directory / "appendonlydir");
  if (manifests.size() == 1) return manifests[0];
  return absl::NotFoundError(
      fmt::format("{}: {} of an append-only file in it", directory.string(),
                  manifests.empty() ? "there is no manifest" : "there are several manifests"));
}

// Files of a manifest, base first: lines such as `file appendonly.aof.1.base.rdb seq 1 type b`.
// Type h: history, not needed.
absl::StatusOr<std::vector<std::string>> ReadManifest(const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> input, InputFile::Open(path));
  std::vector<std::string> files;
  while (true) {
    bool end = false;
    VARVE_ASSIGN_OR_RETURN(const std::string_view line, input->Line(kLongestManifestLine, &end));
    if (end) break;
    if (line.empty() || line[0] == '#') continue;
    std::string unquoted(line);
    std::vector<std::string_view> words;
    const bool split = SplitPlainLine(unquoted.data(), unquoted.size(), &words);
    std::string_view file, type;
    for (size_t i = 0; split && i + 1 < words.size(); i += 2) {
      if (words[i] == "file") file = words[i + 1];
      if (words[i] == "type") type = words[i + 1];
    }
    if (file.empty() || type.empty() || file.find('/') != std::string_view::npos) {
      return input->Damaged(fmt::format("manifest: a line that can't be read: {}", line));
    }
    if (type == "h") continue;
    const std::string full = (fs::path(path).parent_path() / fs::path(file)).string();
    files.insert(type == "b" ? files.begin() : files.end(), full);
  }
  if (files.empty()) return input->Damaged("manifest: it names no file");
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisFilesReader>> RedisFilesReader::Open(const std::string& path,
                                                                         bool allow_flush,
                                                                         uint64_t now_ms) {
  std::string manifest = path.ends_with(kManifestSuffix) ? path : "";
  std::error_code error;
  if (fs::is_directory(path, error)) {
    VARVE_ASSIGN_OR_RETURN(manifest, FindManifest(path));
  }
  std::vector<std::string> paths = {path};
  if (!manifest.empty()) {
    VARVE_ASSIGN_OR_RETURN(paths, ReadManifest(manifest));
  }
  uint64_t size = 0;
  for (const std::string& file : paths) {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> input, InputFile::Open(file));
    size += input->size();
  }
  std::unique_ptr<RedisFilesReader> reader(
      new RedisFilesReader(std::move(paths), allow_flush, now_ms));
  reader->size_ = size;
  return reader;
}

uint64_t RedisFilesReader::offset() const {
  return base_ + (input_ != nullptr      ? input_->offset()
                  : commands_ != nullptr ? commands_->offset()
                                         : 0);
}

absl::Status RedisFilesReader::BeginFile() {
  VARVE_ASSIGN_OR_RETURN(input_, InputFile::Open(paths_[next_file_++]));
  VARVE_ASSIGN_OR_RETURN(const std::string_view head, input_->Peek(kMagicSize));
  if (RdbReader::IsRdb(head)) {
    rdb_ = std::make_unique<RdbReader>(input_.get());
  } else {
    commands_ = std::make_unique<CommandReader>(std::move(input_), allow_flush_, now_ms_);
  }
  return absl::OkStatus();
}

void RedisFilesReader::EndFile() {
  const ImportNotes& notes = commands_->notes();
  for (const auto& [what, count] : notes.left_out) notes_.left_out[what] += count;
  notes_.with_expiry += notes.with_expiry;
  notes_.expired += notes.expired;
  if (!notes.warning.empty()) notes_.warning = notes.warning;
  if (notes.open_transaction) notes_.open_transaction = base_ + *notes.open_transaction;
  base_ += commands_->offset();
  commands_.reset();
}

bool RedisFilesReader::Takes(const RdbItem& item) {
  if (!item.passed_over.empty()) {
    ++notes_.left_out[std::string(item.passed_over)];
  } else if (item.database != 0) {
    ++notes_.left_out["key of another database"];
  } else if (item.expiry_ms != 0 && item.expiry_ms <= now_ms_) {
    ++notes_.expired;
  } else {
    return true;
  }
  return false;
}

absl::StatusOr<bool> RedisFilesReader::NextOfRdb(ImportRecord* record) {
  RdbItem item;
  do {
    VARVE_ASSIGN_OR_RETURN(const bool found, rdb_->Next(&item));
    if (found) continue;
    if (rdb_->lacks_checksum())
      notes_.warning =
          fmt::format("{}: its RDB data was written without a checksum", input_->path());
    return false;
  } while (!Takes(item));
  record->wrong.clear();
  record->offset = item.offset;
  record->words = {"SET", item.key, item.value};
  if (item.expiry_ms != 0) {
    ++notes_.with_expiry;
    expiry_text_ = fmt::to_string(item.expiry_ms);
    record->words.insert(record->words.end(), {"PXAT", expiry_text_});
  }
  record->repeatable = true;
  return true;
}

absl::StatusOr<bool> RedisFilesReader::Next(ImportRecord* record) {
  while (true) {
    if (rdb_ == nullptr && commands_ == nullptr) {
      if (next_file_ == paths_.size()) return false;
      VARVE_RETURN_IF_ERROR(BeginFile());
    }
    VARVE_ASSIGN_OR_RETURN(const bool found,
                           rdb_ != nullptr ? NextOfRdb(record) : commands_->Next(record));
    if (found) {
      record->offset += base_;
      return true;
    }
    if (rdb_ != nullptr) {
      rdb_.reset();
      commands_ = std::make_unique<CommandReader>(std::move(input_), allow_flush_, now_ms_);
    } else {
      EndFile();
    }
  }
}

}  // namespace varve
