#include "client/transfer/text_readers.h"

#include <algorithm>
#include <utility>

#include "client/console/json_records.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"
#include "varve/options.h"

namespace varve {
namespace {

constexpr size_t kLongestLine = size_t{3} << 30;  // the largest key and value, every byte escaped

// Of a CSV record.
constexpr size_t kFields = 4;
constexpr size_t kLongestField[kFields] = {kMaxKeySize, kMaxValueSize, 1024, kMaxMetadataSize};
constexpr std::string_view kTooLong[kFields] = {
    "key of more than 1 MiB", "value of more than 512 MiB", "third column of more than 1 KiB",
    "fourth column of more than 64 KiB"};

// Some editors put it before the first character.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

absl::Status SkipByteOrderMark(InputFile* input) {
  if (input->offset() != 0) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const std::string_view head, input->Peek(kByteOrderMark.size()));
  if (head.starts_with(kByteOrderMark)) input->Consume(kByteOrderMark.size());
  return absl::OkStatus();
}

void AppendField(std::string_view bytes, std::string* out) {
  const bool plain = bytes.find_first_of("\",\r\n") == std::string_view::npos && !bytes.empty() &&
                     bytes.front() != ' ' && bytes.back() != ' ';
  if (plain) {
    *out += bytes;
    return;
  }
  *out += '"';
  for (const char c : bytes) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

}  // namespace

void AppendCsvRecord(std::string_view key, std::string_view value, std::string_view expiry,
                     std::string_view metadata, std::string* out) {
  AppendField(key, out);
  *out += ',';
  AppendField(value, out);
  *out += ',';
  *out += expiry;
  *out += ',';
  if (!metadata.empty()) AppendField(metadata, out);
  *out += '\n';
}

bool PairReader::Seek(uint64_t offset, uint64_t line) {
  line_ = line;
  at_begin_ = offset == 0;
  return input_->Seek(offset);
}

absl::StatusOr<bool> PairReader::Next(ImportRecord* record) {
  VARVE_RETURN_IF_ERROR(SkipByteOrderMark(input_.get()));
  VARVE_ASSIGN_OR_RETURN(const std::optional<Pair> pair, ReadPair(record));
  if (!pair) return false;
  BecomeSet(*pair, record);
  return true;
}

void PairReader::BecomeSet(const Pair& pair, ImportRecord* record) {
  const auto& [key, value, expiry, metadata] = pair;
  record->words = {"SET", key, value};
  record->repeatable = true;
  if (!record->wrong.empty()) return;
  int64_t expires_at_ms = 0;
  const bool is_number = ParseRespInteger(expiry, &expires_at_ms) && expires_at_ms > 0;
  if (!expiry.empty() && !is_number) {
    record->wrong =
        fmt::format("it expires at '{}', which is no number of milliseconds", expiry.substr(0, 32));
    return;
  }
  if (is_number && static_cast<uint64_t>(expires_at_ms) <= now_ms_) {
    ++notes_.expired;
    record->words = {"DEL", key};  // an earlier value is gone, too
    return;
  }
  if (is_number) {
    ++notes_.with_expiry;
    record->words.insert(record->words.end(), {"PXAT", expiry});
  }
  if (!metadata.empty()) record->words.insert(record->words.end(), {"META", metadata});
}

absl::StatusOr<std::string> CsvReader::ReadFields() {
  std::string wrong;
  size_t field = 0;
  bool in_quotes = false;
  bool was_quoted = false;  // the field ended with a quote: a comma or the line's end follows
  for (std::string& text : fields_) text.clear();
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, input_->Peek(2));
    if (bytes.empty()) {
      if (in_quotes && wrong.empty()) wrong = "the file ends inside quotes";
      break;
    }
    const char c = bytes[0];
    const bool doubled = in_quotes && c == '"' && bytes.size() > 1 && bytes[1] == '"';
    const bool ends_line =
        !in_quotes && (c == '\n' || (c == '\r' && bytes.size() > 1 && bytes[1] == '\n'));
    input_->Consume(doubled || (ends_line && c == '\r') ? 2 : 1);
    if (c == '\n' || (ends_line && c == '\r')) ++line_;
    if (ends_line) break;
    if (c == '"' && !doubled &&
        (in_quotes || (fields_[std::min(field, kFields - 1)].empty() && !was_quoted))) {
      was_quoted = in_quotes;
      in_quotes = !in_quotes;
    } else if (c == ',' && !in_quotes) {
      ++field;
      was_quoted = false;
    } else if (was_quoted) {
      wrong = "text behind a closing quote";
    } else if (!wrong.empty()) {
      continue;  // to the record's end
    } else if (field < kFields && fields_[field].size() == kLongestField[field]) {
      wrong = fmt::format("a {}; is a closing quote missing?", kTooLong[field]);
    } else if (field < kFields) {
      fields_[field] += c;
    }
  }
  if (wrong.empty() && (field == 0 || field >= kFields))
    wrong = fmt::format("{} columns instead of two to four", field + 1);
  return wrong;
}

absl::StatusOr<std::optional<PairReader::Pair>> CsvReader::ReadPair(ImportRecord* record) {
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, input_->Peek(1));
    if (bytes.empty()) return std::nullopt;
    record->offset = input_->offset();
    record->line = line_;
    if (bytes[0] == '\n' || bytes[0] == '\r') {  // an empty line
      input_->Consume(1);
      line_ += bytes[0] == '\n';
      continue;
    }
    VARVE_ASSIGN_OR_RETURN(record->wrong, ReadFields());
    const bool is_title =
        std::exchange(at_begin_, false) && fields_[0] == "key" && fields_[1] == "value";
    if (!is_title) return Pair{fields_[0], fields_[1], fields_[2], fields_[3]};
  }
}

absl::StatusOr<std::optional<PairReader::Pair>> JsonLinesReader::ReadPair(ImportRecord* record) {
  while (true) {
    record->offset = input_->offset();
    record->line = line_;
    bool end = false;
    VARVE_ASSIGN_OR_RETURN(const std::string_view line, input_->Line(kLongestLine, &end));
    if (end) return std::nullopt;
    ++line_;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const absl::Status parsed = ParseJsonRecord(line, &key_, &value_, &expiry_, &metadata_);
    record->wrong = std::string(parsed.message());
    return Pair{key_, value_, expiry_, metadata_};
  }
}

}  // namespace varve
