#include "util/resp/resp_writer.h"

#include <charconv>

namespace varve {

char* RespWriter::PutHeader(char* out, char marker, int64_t value) {
  *out++ = marker;
  if (value >= 0 && value < 1000) {  // most
    const auto number = static_cast<unsigned>(value);
    if (number >= 100) *out++ = static_cast<char>('0' + number / 100);
    if (number >= 10) *out++ = static_cast<char>('0' + number / 10 % 10);
    *out++ = static_cast<char>('0' + number % 10);
  } else {
    out = std::to_chars(out, out + 20, value).ptr;
  }
  *out++ = '\r';
  *out++ = '\n';
  return out;
}

void RespWriter::Line(char marker, std::string_view text) {
  char* const begin = out_->Reserve(text.size() + 3);
  char* end = begin;
  *end++ = marker;
  for (const char c : text) *end++ = c == '\r' || c == '\n' ? ' ' : c;
  *end++ = '\r';
  *end++ = '\n';
  out_->Commit(static_cast<size_t>(end - begin));
}

void RespWriter::Verbatim(std::string_view text) {
  if (protocol_ < 3) return Bulk(text);
  Header('=', static_cast<int64_t>(text.size() + 4));
  out_->Append("txt:");
  out_->Append(text);
  out_->Append("\r\n");
}

void RespWriter::Map(size_t pairs) {
  if (protocol_ >= 3) return Header('%', static_cast<int64_t>(pairs));
  Header('*', static_cast<int64_t>(pairs * 2));
}

}  // namespace varve
