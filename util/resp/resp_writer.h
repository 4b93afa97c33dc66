// The RESP writer writes replies in RESP2 or RESP3 to a ByteBuffer. A RESP3 type that RESP2 does
// not have falls back as in Redis: a map becomes a flat array, null becomes "$-1".
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <string_view>

#include "util/resp/resp_buffer.h"

namespace varve {

class RespWriter {
 public:
  explicit RespWriter(ByteBuffer* out, int protocol = 2) : out_(out), protocol_(protocol) {}

  int protocol() const { return protocol_; }
  void set_protocol(int protocol) { protocol_ = protocol; }
  ByteBuffer* buffer() { return out_; }

  void Ok() { out_->Append("+OK\r\n"); }
  void Simple(std::string_view text) { Line('+', text); }
  // `text` begins with its code, e.g. "ERR no such key". Line ends inside become blanks; at its end
  // they go.
  void Error(std::string_view text) {
    Line('-', text.substr(0, text.find_last_not_of("\r\n") + 1));
  }
  void Integer(int64_t value) { Header(':', value); }
  void Bulk(std::string_view bytes) {
    char* const begin = out_->Reserve(bytes.size() + kMaxHeader + 2);
    char* end = PutHeader(begin, '$', static_cast<int64_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(end, bytes.data(), bytes.size());
    end += bytes.size();
    *end++ = '\r';
    *end++ = '\n';
    out_->Commit(static_cast<size_t>(end - begin));
  }
  void Null() { out_->Append(protocol_ >= 3 ? "_\r\n" : "$-1\r\n"); }
  void NullArray() { out_->Append(protocol_ >= 3 ? "_\r\n" : "*-1\r\n"); }
  // Text for people: a verbatim string in RESP3, a bulk string in RESP2.
  void Verbatim(std::string_view text);

  // Announce as many elements (pairs, for a map) that follow.
  void Array(size_t elements) { Header('*', static_cast<int64_t>(elements)); }
  void Map(size_t pairs);
  void Set(size_t elements) { Header(protocol_ >= 3 ? '~' : '*', static_cast<int64_t>(elements)); }
  void Push(size_t elements) { Header(protocol_ >= 3 ? '>' : '*', static_cast<int64_t>(elements)); }

 private:
  static constexpr size_t kMaxHeader = 24;  // marker, sign, 19 digits, CRLF

  static char* PutHeader(char* out, char marker, int64_t value);
  void Header(char marker, int64_t value) {
    char* const begin = out_->Reserve(kMaxHeader);
    out_->Commit(static_cast<size_t>(PutHeader(begin, marker, value) - begin));
  }
  void Line(char marker, std::string_view text);

  ByteBuffer* out_;
  int protocol_;
};

}  // namespace varve
