#include "tools/archive/archive_position.h"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <utility>

#include "tools/backup/backup_list.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kArchiveLastWord = "varve-archive-last ";
constexpr std::string_view kArchiveLastLine = "varve-archive-last 1\n";

// Takes `name`, a space, a number and the end of the line off the text.
bool TakeNumber(std::string_view name, int base, std::string_view* text, uint64_t* number) {
  if (!text->starts_with(name)) return false;
  text->remove_prefix(name.size());
  const size_t end = text->find('\n');
  if (end == std::string_view::npos || end < 2 || text->front() != ' ') return false;
  const char* const last = text->data() + end;
  const auto [stop, error] = std::from_chars(text->data() + 1, last, *number, base);
  if (error != std::errc() || stop != last) return false;
  text->remove_prefix(end + 1);
  return true;
}

bool TakeBase(std::string_view* text, std::string* id) {
  constexpr std::string_view kName = "base ";
  if (!text->starts_with(kName)) return false;
  text->remove_prefix(kName.size());
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return false;
  id->assign(text->substr(0, end));
  text->remove_prefix(end + 1);
  return IsBackupId(*id);
}

}  // namespace

std::string EncodeArchivePosition(const ArchivePosition& position) {
  std::string text = fmt::format(
      "{}history {:016x}\nbase {}\nnumber {}\nversion {}\ninstant_ms {}\ncurrent_ms {}\n"
      "predecessor {:016x}\n",
      kArchiveLastLine, position.history_id, position.base, position.number, position.version,
      position.instant_ms, position.current_ms, position.predecessor);
  const uint64_t checksum = HashKey(text);
  return text + fmt::format("checksum {:016x}\n", checksum);
}

absl::StatusOr<ArchivePosition> DecodeArchivePosition(std::string_view text,
                                                      const std::string& path) {
  if (text.starts_with(kArchiveLastWord) && !text.starts_with(kArchiveLastLine)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a later version of Varve has written it, or it is damaged", path));
  }
  ArchivePosition position;
  std::string_view left = text;
  if (left.starts_with(kArchiveLastLine)) {
    left.remove_prefix(kArchiveLastLine.size());
    uint64_t checksum = 0;
    const bool is_read = TakeNumber("history", 16, &left, &position.history_id) &&
                         TakeBase(&left, &position.base) &&
                         TakeNumber("number", 10, &left, &position.number) &&
                         TakeNumber("version", 10, &left, &position.version) &&
                         TakeNumber("instant_ms", 10, &left, &position.instant_ms) &&
                         TakeNumber("current_ms", 10, &left, &position.current_ms) &&
                         TakeNumber("predecessor", 16, &left, &position.predecessor) &&
                         TakeNumber("checksum", 16, &left, &checksum) && left.empty();
    // Also a digit in another case, or a zero more, is not what was written.
    if (is_read && EncodeArchivePosition(position) == text) return position;
  }
  return Corruption(path, text.size() - left.size(), "the position of the archive is damaged");
}

}  // namespace varve
