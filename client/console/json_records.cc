#include "client/console/json_records.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "client/console/text.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr int kMaxDepth = 64;

void AppendMember(std::string_view name, std::string_view bytes, std::string* out) {
  if (IsUtf8(bytes)) {
    *out += fmt::format("\"{}\":", name);
    return AppendJsonString(bytes, out);
  }
  std::string encoded;
  absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()), &encoded);
  *out += fmt::format("\"{}_base64\":\"{}\"", name, encoded);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(uint32_t point, std::string* out) {
  if (point < 0x80) {
    *out += static_cast<char>(point);
  } else if (point < 0x800) {
    *out += {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
  } else if (point < 0x10000) {
    *out += {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
             static_cast<char>(0x80 | (point & 0x3F))};
  } else {
    *out +=
        {static_cast<char>(0xF0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 0x3F)),
         static_cast<char>(0x80 | (point >> 6 & 0x3F)), static_cast<char>(0x80 | (point & 0x3F))};
  }
}

// Reads JSON from the front of a line.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::Status Fail(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("byte {}: {}", position_ + 1, what));
  }
  char Peek() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t'))
      ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++position_;
    return true;
  }
  bool AtEnd() { return Peek() == '\0' && position_ == text_.size(); }

  absl::Status String(std::string* out) {
    if (!Take('"')) return Fail("a string is expected here");
    out->clear();
    while (position_ < text_.size() && text_[position_] != '"') {
      if (text_[position_] != '\\') {
        *out += text_[position_++];
        continue;
      }
      VARVE_RETURN_IF_ERROR(Escape(out));
    }
    if (position_ == text_.size()) return Fail("the string does not end");
    ++position_;
    return absl::OkStatus();
  }

  // Any value, which is not kept.
  absl::Status Skip(int depth) {
    if (depth > kMaxDepth) return Fail("nested too deeply");
    std::string ignored;
    const char c = Peek();
    if (c == '"') return String(&ignored);
    if (c == '{' || c == '[') return SkipMembers(c == '{', depth);
    return Number(&ignored);
  }

  // As it stands there, whatever it is: also null or true.
  absl::Status Number(std::string* out) {
    Peek();
    const size_t begin = position_;
    while (position_ < text_.size() &&
           std::string_view(",]} \t").find(text_[position_]) == std::string_view::npos) {
      ++position_;
    }
    out->assign(text_.substr(begin, position_ - begin));
    return position_ == begin ? Fail("a value is expected here") : absl::OkStatus();
  }

 private:
  absl::Status SkipMembers(bool named, int depth) {
    const char close = named ? '}' : ']';
    ++position_;
    if (Take(close)) return absl::OkStatus();
    do {
      std::string ignored;
      if (named) VARVE_RETURN_IF_ERROR(String(&ignored));
      if (named && !Take(':')) return Fail("':' is expected here");
      VARVE_RETURN_IF_ERROR(Skip(depth + 1));
    } while (Take(','));
    return Take(close) ? absl::OkStatus() : Fail("',' or the end is expected here");
  }

  std::optional<uint32_t> FourDigits() {
    if (text_.size() - position_ < 4) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = HexDigit(text_[position_ + static_cast<size_t>(i)]);
      if (digit < 0) return std::nullopt;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    position_ += 4;
    return value;
  }

  absl::Status Escape(std::string* out) {
    ++position_;
    if (position_ == text_.size()) return Fail("the string does not end");
    const char c = text_[position_++];
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      *out += kMeanings[at];
      return absl::OkStatus();
    }
    const std::optional<uint32_t> unit = c == 'u' ? FourDigits() : std::nullopt;
    if (!unit) return Fail("no such escape");
    uint32_t point = *unit;
    if (point >= 0xD800 && point < 0xDC00 && text_.substr(position_, 2) == "\\u") {
      position_ += 2;
      const std::optional<uint32_t> low = FourDigits();
      if (!low || *low < 0xDC00 || *low > 0xDFFF) return Fail("half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10) + (*low - 0xDC00);
    }
    if (point >= 0xD800 && point <= 0xDFFF) return Fail("half of a surrogate pair");
    AppendUtf8(point, out);
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t position_ = 0;
};

absl::Status ReadMember(Reader* reader, bool is_base64, std::string* bytes) {
  VARVE_RETURN_IF_ERROR(reader->String(bytes));
  std::string decoded;
  if (is_base64) {
    if (!absl::Base64Unescape(*bytes, &decoded)) return reader->Fail("this is no base64");
    *bytes = std::move(decoded);
  }
  return absl::OkStatus();
}

}  // namespace

void AppendJsonRecord(std::string_view key, std::string_view value, std::string_view expiry,
                      std::string_view metadata, std::string* out) {
  *out += '{';
  AppendMember("key", key, out);
  *out += ',';
  AppendMember("value", value, out);
  if (!expiry.empty()) *out += fmt::format(",\"expires_at_ms\":{}", expiry);
  if (!metadata.empty()) {
    *out += ',';
    AppendMember("metadata", metadata, out);
  }
  *out += "}\n";
}

absl::Status ParseJsonRecord(std::string_view line, std::string* key, std::string* value,
                             std::string* expiry, std::string* metadata) {
  expiry->clear();
  metadata->clear();
  Reader reader(line);
  bool has_key = false;
  bool has_value = false;
  if (!reader.Take('{')) return reader.Fail("'{' is expected here");
  if (!reader.Take('}')) {
    do {
      std::string name;
      VARVE_RETURN_IF_ERROR(reader.String(&name));
      if (!reader.Take(':')) return reader.Fail("':' is expected here");
      if (name == "key" || name == "key_base64") {
        VARVE_RETURN_IF_ERROR(ReadMember(&reader, name != "key", key));
        has_key = true;
      } else if (name == "value" || name == "value_base64") {
        VARVE_RETURN_IF_ERROR(ReadMember(&reader, name != "value", value));
        has_value = true;
      } else if (name == "expires_at_ms") {
        VARVE_RETURN_IF_ERROR(reader.Number(expiry));
      } else if (name == "metadata" || name == "metadata_base64") {
        VARVE_RETURN_IF_ERROR(ReadMember(&reader, name != "metadata", metadata));
      } else {
        VARVE_RETURN_IF_ERROR(reader.Skip(0));
      }
    } while (reader.Take(','));
    if (!reader.Take('}')) return reader.Fail("',' or '}' is expected here");
  }
  if (!reader.AtEnd()) return reader.Fail("more follows the object");
  if (!has_key) return reader.Fail("the object has no \"key\"");
  if (!has_value) return reader.Fail("the object has no \"value\"");
  return absl::OkStatus();
}

}  // namespace varve
