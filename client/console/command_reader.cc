#include "client/console/command_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"
#include "util/resp/resp_buffer.h"
#include "util/resp/resp_reply.h"

namespace varve {
namespace {

enum class Handling {
  kRepeatable,
  kOnce,
  kSet,
  kSelect,
  kFlush,
  kExpiry,
  kExpiryAt,
  kBegin,
  kEnd,
  kDrop
};

struct KnownCommand {
  std::string_view name;
  Handling handling;
};

constexpr KnownCommand kKnown[] = {
    {"SET", Handling::kSet},
    {"PUT", Handling::kSet},
    {"MSET", Handling::kRepeatable},
    {"DEL", Handling::kRepeatable},
    {"UNLINK", Handling::kRepeatable},
    {"DELETE", Handling::kRepeatable},
    {"DELRANGE", Handling::kRepeatable},
    {"SETRANGE", Handling::kRepeatable},
    {"SETBIT", Handling::kRepeatable},
    {"SETNX", Handling::kOnce},
    {"MSETNX", Handling::kOnce},
    {"APPEND", Handling::kOnce},
    {"INCR", Handling::kOnce},
    {"DECR", Handling::kOnce},
    {"INCRBY", Handling::kOnce},
    {"DECRBY", Handling::kOnce},
    {"INCRBYFLOAT", Handling::kOnce},
    {"GETSET", Handling::kOnce},
    {"GETDEL", Handling::kOnce},
    {"RENAME", Handling::kOnce},
    {"RENAMENX", Handling::kOnce},
    {"COPY", Handling::kOnce},
    {"BITOP", Handling::kOnce},
    {"BITFIELD", Handling::kOnce},
    {"FLUSHALL", Handling::kFlush},
    {"FLUSHDB", Handling::kFlush},
    {"SELECT", Handling::kSelect},
    {"EXPIRE", Handling::kExpiry},
    {"PEXPIRE", Handling::kExpiry},
    {"EXPIREAT", Handling::kExpiryAt},
    {"PEXPIREAT", Handling::kExpiryAt},
    {"SETEX", Handling::kExpiry},
    {"PSETEX", Handling::kExpiry},
    {"PERSIST", Handling::kRepeatable},
    {"MULTI", Handling::kBegin},
    {"EXEC", Handling::kEnd},
    {"DISCARD", Handling::kEnd},
    {"PING", Handling::kDrop},
};

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  return upper;
}

const KnownCommand* FindKnown(const std::string& upper) {
  const auto* const found =
      std::find_if(std::begin(kKnown), std::end(kKnown),
                   [&](const KnownCommand& known) { return known.name == upper; });
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace

void AppendRespRecord(std::string_view key, std::string_view value, std::string_view expiry,
                      std::string_view metadata, std::string* out) {
  std::vector<std::string_view> words = {"SET", key, value};
  if (!expiry.empty()) words.insert(words.end(), {"PXAT", expiry});
  if (!metadata.empty()) words.insert(words.end(), {"META", metadata});
  ByteBuffer buffer;
  AppendRequest(words, &buffer);
  out->append(buffer.view());
}

absl::StatusOr<bool> CommandReader::ReadCommand(ImportRecord* record) {
  size_t wanted = 1;
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, input_->Peek(wanted));
    if (bytes.empty()) {
      NoteOpenTransaction();
      return false;
    }
    if (bytes[0] == '#') {  // a note in an AOF, such as #TS:1700000000
      bool end = false;
      VARVE_RETURN_IF_ERROR(input_->Line(1 << 16, &end).status());
      continue;
    }
    if (bytes[0] != '*') return input_->Damaged("no command begins here ('*' is expected)");
    if (bytes.size() < wanted) {
      notes_.warning =
          fmt::format("{} ends in the middle of a command that begins at offset {}; it is left out",
                      input_->path(), input_->offset());
      NoteOpenTransaction();
      return false;
    }
    record->words.clear();
    size_t consumed = 0;
    const RespParser::Result result =
        parser_.Next(input_->data(), bytes.size(), &record->words, &consumed);
    if (result == RespParser::Result::kError) return input_->Damaged(parser_.error());
    if (result == RespParser::Result::kRequest) {
      record->offset = input_->offset();
      consumed_ = consumed;
      return true;
    }
    wanted = bytes.size() + std::max<size_t>(parser_.missing(), 1);
  }
}

void CommandReader::NoteOpenTransaction() {
  if (!transaction_) return;
  notes_.open_transaction = transaction_;
  notes_.warning = fmt::format("{} ends in the middle of a transaction that begins at offset {}",
                               input_->path(), *transaction_);
}

void CommandReader::LookAtExpiry(ImportRecord* record, uint64_t unit_ms) {
  int64_t time = 0;
  const std::vector<std::string_view>& words = record->words;
  record->repeatable = words.size() == 3;  // without NX, XX, GT, LT
  const bool is_over = words.size() == 3 && ParseRespInteger(words[2], &time) &&
                       (time <= 0 || static_cast<uint64_t>(time) <= now_ms_ / unit_ms);
  if (!is_over) {
    ++notes_.with_expiry;
    return;
  }
  ++notes_.expired;
  record->words = {"DEL", words[1]};
}

void CommandReader::LookAtSet(ImportRecord* record) {
  std::vector<std::string_view>& words = record->words;
  for (size_t i = 3; i < words.size(); ++i) {
    const std::string option = Upper(words[i]);
    if (option == "KEEPTTL" || option == "KEEPMETA") continue;
    if (option == "META") {
      ++i;  // the bytes may look like an option
      continue;
    }
    if (option != "EX" && option != "PX" && option != "EXAT" && option != "PXAT") {
      record->repeatable = false;  // NX, XX, GET
      continue;
    }
    int64_t time = 0;
    // The server refuses it.
    if (++i >= words.size() || !ParseRespInteger(words[i], &time)) continue;
    const bool over = (option == "PXAT" && static_cast<uint64_t>(time) <= now_ms_) ||
                      (option == "EXAT" && static_cast<uint64_t>(time) <= now_ms_ / 1000);
    if (over) {
      ++notes_.expired;
      words = {"DEL", words[1]};  // an earlier value is gone, too
      return;
    }
    ++notes_.with_expiry;
  }
}

bool CommandReader::Passes(ImportRecord* record) {
  if (record->words.empty()) return false;
  const std::string name = Upper(record->words[0]);
  const KnownCommand* const known = FindKnown(name);
  const Handling handling = known == nullptr ? Handling::kDrop : known->handling;
  if (handling == Handling::kSelect) {
    other_database_ =
        record->words.size() == 2 && record->words[1] == "0" ? "" : "command for another database";
    return false;
  }
  if (handling == Handling::kBegin) transaction_ = record->offset;
  if (handling == Handling::kEnd) transaction_.reset();
  if (handling == Handling::kBegin || handling == Handling::kEnd) return false;
  if (handling == Handling::kDrop && known != nullptr) return false;
  if (known == nullptr || !other_database_.empty()) {
    // Its name comes from the file, which may hold anything.
    const bool nameable = name.size() <= 20 && std::all_of(name.begin(), name.end(), [](char c) {
                            return c > ' ' && c < 127;
                          });
    ++notes_.left_out[!other_database_.empty() ? other_database_
                      : nameable               ? "command " + name
                                               : "unknown command"];
    return false;
  }
  record->repeatable = handling != Handling::kOnce;
  if (handling == Handling::kSet) LookAtSet(record);
  if (handling == Handling::kExpiryAt) LookAtExpiry(record, name == "EXPIREAT" ? 1000 : 1);
  if (handling == Handling::kExpiry) ++notes_.with_expiry;
  if (handling == Handling::kFlush && !allow_flush_) {
    record->wrong = name + " would delete everything that the server holds; --force lets it pass";
  }
  return true;
}

absl::StatusOr<bool> CommandReader::Next(ImportRecord* record) {
  while (true) {
    input_->Consume(std::exchange(consumed_, 0));
    record->wrong.clear();
    VARVE_ASSIGN_OR_RETURN(const bool found, ReadCommand(record));
    if (!found) return false;
    if (Passes(record)) return true;
  }
}

}  // namespace varve
