// The kinds of files that import and export know, and how they are told apart.
//
// Thread-safety: Nothing here keeps state, so all threads may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/console/record_reader.h"

namespace varve {

enum class FileFormat {
  kResp,  // SET commands: our own, binary, also for redis-cli --pipe
  kCsv,
  kJson,   // JSON lines
  kRedis,  // RDB and AOF: for import alone
};

// `name` is that of --format; where it is empty the file's first bytes decide (of a file that
// exists), else its name; kResp if nothing speaks for another.
[[nodiscard]] absl::StatusOr<FileFormat> ChooseFormat(std::string_view name,
                                                      const std::string& path);
std::string_view NameOf(FileFormat format);

struct OpenedReader {
  std::unique_ptr<RecordReader> reader;
  uint64_t size = 0;  // bytes; 0: not known
};
// `path` "-": standard input (not for kRedis).
[[nodiscard]] absl::StatusOr<OpenedReader> OpenReader(FileFormat format, const std::string& path,
                                                      bool allow_flush);

// Appends the record (not for kRedis), and what comes before the first one. `expires_at_ms`:
// milliseconds since the epoch; 0: never. `metadata`: empty: there is none.
void AppendRecord(FileFormat format, std::string_view key, std::string_view value,
                  uint64_t expires_at_ms, std::string_view metadata, std::string* out);
std::string_view TitleOf(FileFormat format);
// Returns whether a file of AppendRecord() and TitleOf() may begin so, or one of an earlier
// version; kBeginningSize bytes are enough.
inline constexpr size_t kBeginningSize = 32;
bool MayBeExported(FileFormat format, std::string_view head);

}  // namespace varve
