#include "util/resp/resp_parser.h"

#include <cstring>

#include "fmt/format.h"

namespace varve {
namespace {

constexpr int64_t kUntrustedArguments = 10;
constexpr int64_t kUntrustedBulk = 16384;
constexpr char kTlsHandshake = 0x16;  // the first byte of a TLS hello; no command begins with it
constexpr uint64_t kPlainArguments = 32;
constexpr int kPlainDigits = 9;

// Reads a marker, up to kPlainDigits digits without leading zeros, a CR and the byte behind it.
// Null: something else stands there.
const char* TakePlainHeader(const char* at, const char* end, char marker, uint64_t* value) {
  if (end - at < kPlainDigits + 3 || *at != marker) return nullptr;
  const auto digit_at = [at](int i) { return static_cast<unsigned char>(at[i]) - unsigned{'0'}; };
  uint64_t number = digit_at(1);
  if (number > 9) return nullptr;
  int i = 2;
  if (at[i] != '\r') {
    if (number == 0) return nullptr;
    for (; at[i] != '\r'; ++i) {
      const unsigned digit = digit_at(i);
      if (digit > 9 || i > kPlainDigits) return nullptr;
      number = number * 10 + digit;
    }
  }
  *value = number;
  return at + i + 2;
}

}  // namespace

bool ParseRespInteger(std::string_view text, int64_t* value) {
  if (text.empty() || text.size() > 20) return false;
  const bool negative = text[0] == '-';
  size_t i = negative ? 1 : 0;
  if (i == text.size()) return false;
  if (text[i] == '0') {
    *value = 0;
    return text.size() == 1;
  }
  uint64_t magnitude = 0;
  for (; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    const uint64_t digit = static_cast<uint64_t>(text[i] - '0');
    if (magnitude > (UINT64_MAX - digit) / 10) return false;
    magnitude = magnitude * 10 + digit;
  }
  const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (magnitude > limit) return false;
  *value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

bool ParseRespCount(std::string_view text, uint64_t* count) {
  int64_t value = 0;
  if (!ParseRespInteger(text, &value) || value < 0) return false;
  *count = static_cast<uint64_t>(value);
  return true;
}

RespParser::Result RespParser::Fail(std::string_view what) {
  error_ = fmt::format("ERR Protocol error: {}", what);
  return Result::kError;
}

RespParser::Result RespParser::Next(char* data, size_t size,
                                    std::vector<std::string_view>* arguments, size_t* consumed) {
  missing_ = 1;
  if (size == 0) return Result::kNeedMore;
  if (data[0] != '*') {
    const size_t arguments_before = arguments->size();
    const char* newline =
        static_cast<const char*>(std::memchr(data + position_, '\n', size - position_));
    if (data[0] == kTlsHandshake) return Fail("TLS is not spoken on this port");
    if (newline == nullptr) {
      position_ = size;
      return size > limits_.max_line ? Fail("too big inline request") : Result::kNeedMore;
    }
    size_t length = static_cast<size_t>(newline - data);
    if (length > limits_.max_line) return Fail("too big inline request");
    *consumed = length + 1;
    position_ = 0;
    if (length > 0 && data[length - 1] == '\r') --length;
    if (!SplitPlainLine(data, length, arguments)) {
      arguments->resize(arguments_before);
      return Fail("unbalanced quotes in request");
    }
    return Result::kRequest;
  }
  if (position_ == 0 && trusted_ && TakePlainArray(data, size, arguments, consumed))
    return Result::kRequest;
  const Result result = NextArray(data, size);
  if (result != Result::kRequest) return result;
  for (const Range& range : ranges_) arguments->emplace_back(data + range.offset, range.size);
  *consumed = position_;
  position_ = 0;
  ranges_.clear();
  if (ranges_.capacity() > 4096) ranges_.shrink_to_fit();
  return Result::kRequest;
}

bool RespParser::TakePlainArray(const char* data, size_t size,
                                std::vector<std::string_view>* arguments, size_t* consumed) const {
  const char* const end = data + size;
  uint64_t count = 0;
  const char* at = TakePlainHeader(data, end, '*', &count);
  if (at == nullptr || count == 0 || count > kPlainArguments) return false;
  const size_t arguments_before = arguments->size();
  const auto most = static_cast<uint64_t>(limits_.max_bulk);
  for (; count > 0; --count) {
    uint64_t length = 0;
    at = TakePlainHeader(at, end, '$', &length);
    if (at == nullptr || length > most || static_cast<uint64_t>(end - at) < length + 2) break;
    if (at[length] != '\r' || at[length + 1] != '\n') break;
    arguments->emplace_back(at, length);
    at += length + 2;
  }
  if (count > 0 || static_cast<size_t>(at - data) > limits_.max_request) {
    arguments->resize(arguments_before);
    return false;
  }
  *consumed = static_cast<size_t>(at - data);
  return true;
}

RespParser::Result RespParser::ReadLength(const char* data, size_t size, std::string_view too_long,
                                          std::string_view invalid, int64_t* value) {
  uint64_t number = 0;
  if (const char* const behind =
          TakePlainHeader(data + position_, data + size, data[position_], &number)) {
    *value = static_cast<int64_t>(number);
    position_ = static_cast<size_t>(behind - data);
    return Result::kRequest;
  }
  const size_t begin = position_ + 1;
  // The bound holds for every header, complete or not: which bytes came together must not change
  // the answer.
  const char* end = begin < size
                        ? static_cast<const char*>(std::memchr(data + begin, '\r', size - begin))
                        : nullptr;
  const size_t end_offset = end == nullptr ? size : static_cast<size_t>(end - data);
  if (end_offset - position_ > limits_.max_line) return Fail(too_long);
  if (end_offset + 1 >= size) return Result::kNeedMore;
  if (!ParseRespInteger({data + begin, end_offset - begin}, value)) return Fail(invalid);
  position_ = end_offset + 2;
  return Result::kRequest;
}

RespParser::Result RespParser::NextArray(const char* data, size_t size) {
  if (position_ == 0) {
    int64_t count = 0;
    const Result header =
        ReadLength(data, size, "too big mbulk count string", "invalid multibulk length", &count);
    if (header != Result::kRequest) return header;
    if (count > limits_.max_arguments) return Fail("invalid multibulk length");
    if (!trusted_ && count > kUntrustedArguments) return Fail("unauthenticated multibulk length");
    remaining_ = count > 0 ? count : 0;
  }
  while (remaining_ > 0) {
    if (bulk_ < 0) {
      if (position_ >= size) return Result::kNeedMore;
      if (data[position_] != '$')
        return Fail(fmt::format("expected '$', got '{}'", data[position_]));
      const Result header =
          ReadLength(data, size, "too big bulk count string", "invalid bulk length", &bulk_);
      if (header != Result::kRequest) return header;
      if (bulk_ < 0 || bulk_ > limits_.max_bulk) return Fail("invalid bulk length");
      if (!trusted_ && bulk_ > kUntrustedBulk) return Fail("unauthenticated bulk length");
      if (position_ + static_cast<size_t>(bulk_) + 2 > limits_.max_request)
        return Fail("too big request");
    }
    const size_t length = static_cast<size_t>(bulk_);
    if (size - position_ < length + 2) {
      missing_ = length + 2 - (size - position_);
      return Result::kNeedMore;
    }
    if (data[position_ + length] != '\r' || data[position_ + length + 1] != '\n') {
      return Fail("expected CRLF after bulk");
    }
    ranges_.push_back({position_, length});
    position_ += length + 2;
    bulk_ = -1;
    --remaining_;
  }
  return Result::kRequest;
}

}  // namespace varve
