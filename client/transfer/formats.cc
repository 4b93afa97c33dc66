#include "client/transfer/formats.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "client/console/command_reader.h"
#include "client/console/input_file.h"
#include "client/console/json_records.h"
#include "client/redis_files/redis_files.h"
#include "client/transfer/text_readers.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

uint64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

FileFormat ByName(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".csv") return FileFormat::kCsv;
  if (extension == ".json" || extension == ".jsonl" || extension == ".ndjson")
    return FileFormat::kJson;
  if (extension == ".rdb" || extension == ".aof" || extension == ".manifest")
    return FileFormat::kRedis;
  return FileFormat::kResp;
}

}  // namespace

std::string_view NameOf(FileFormat format) {
  switch (format) {
    case FileFormat::kResp:
      return "resp";
    case FileFormat::kCsv:
      return "csv";
    case FileFormat::kJson:
      return "json";
    case FileFormat::kRedis:
      return "redis";
  }
  return "";
}

absl::StatusOr<FileFormat> ChooseFormat(std::string_view name, const std::string& path) {
  if (name == "resp") return FileFormat::kResp;
  if (name == "csv") return FileFormat::kCsv;
  if (name == "json" || name == "jsonl") return FileFormat::kJson;
  if (name == "rdb" || name == "aof") return FileFormat::kRedis;
  if (!name.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--format={}: resp, csv, json, rdb or aof", name));
  }
  const FileFormat by_name = ByName(path);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return FileFormat::kRedis;
  if (by_name != FileFormat::kResp || !std::filesystem::is_regular_file(path, error))
    return by_name;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> input, InputFile::Open(path));
  VARVE_ASSIGN_OR_RETURN(const std::string_view head, input->Peek(6));
  if (RdbReader::IsRdb(head)) return FileFormat::kRedis;
  return head.starts_with('{') ? FileFormat::kJson : FileFormat::kResp;
}

absl::StatusOr<OpenedReader> OpenReader(FileFormat format, const std::string& path,
                                        bool allow_flush) {
  if (format == FileFormat::kRedis) {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<RedisFilesReader> redis,
                           RedisFilesReader::Open(path, allow_flush, NowMs()));
    const uint64_t total = redis->size();
    return OpenedReader{std::move(redis), total};
  }
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, InputFile::Open(path));
  OpenedReader opened;
  opened.size = input->size();
  if (format == FileFormat::kResp) {
    opened.reader = std::make_unique<CommandReader>(std::move(input), allow_flush, NowMs());
  } else if (format == FileFormat::kCsv) {
    opened.reader = std::make_unique<CsvReader>(std::move(input), NowMs());
  } else {
    opened.reader = std::make_unique<JsonLinesReader>(std::move(input), NowMs());
  }
  return opened;
}

std::string_view TitleOf(FileFormat format) {
  return format == FileFormat::kCsv ? kCsvTitle : std::string_view();
}

bool MayBeExported(FileFormat format, std::string_view head) {
  const auto begins_with = [head](std::string_view beginning) {
    return beginning.starts_with(head.substr(0, beginning.size()));
  };
  if (format == FileFormat::kCsv)
    return begins_with(kCsvTitle) || begins_with(kCsvTitleWithoutMetadata);
  if (format == FileFormat::kJson) return begins_with("{\"key");
  return begins_with("*3\r\n$3\r\nSET\r\n") || begins_with("*5\r\n$3\r\nSET\r\n") ||
         begins_with("*7\r\n$3\r\nSET\r\n");
}

void AppendRecord(FileFormat format, std::string_view key, std::string_view value,
                  uint64_t expires_at_ms, std::string_view metadata, std::string* out) {
  const std::string expiry = expires_at_ms == 0 ? "" : fmt::to_string(expires_at_ms);
  if (format == FileFormat::kCsv) {
    AppendCsvRecord(key, value, expiry, metadata, out);
  } else if (format == FileFormat::kJson) {
    AppendJsonRecord(key, value, expiry, metadata, out);
  } else {
    AppendRespRecord(key, value, expiry, metadata, out);
  }
}

}  // namespace varve
