// The quoting rules of plain lines.
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads what follows an opening quote up to the closing one and writes it to `*out`. `*in` ends
// behind the closing quote.
bool CopyQuoted(char quote, const char** in, const char* end, char** out) {
  const char* p = *in;
  char* to = *out;
  while (p < end && *p != quote) {
    if (quote == '"' && *p == '\\' && p + 3 < end && p[1] == 'x' && HexDigit(p[2]) >= 0 &&
        HexDigit(p[3]) >= 0) {
      *to++ = static_cast<char>(HexDigit(p[2]) * 16 + HexDigit(p[3]));
      p += 4;
    } else if (quote == '"' && *p == '\\' && p + 1 < end) {
      *to++ = Unescape(p[1]);
      p += 2;
    } else if (quote == '\'' && *p == '\\' && p + 1 < end && p[1] == '\'') {
      *to++ = '\'';
      p += 2;
    } else {
      *to++ = *p++;
    }
  }
  if (p == end) return false;
  ++p;
  if (p < end && !IsBlank(*p)) return false;  // a closing quote ends its argument
  *in = p;
  *out = to;
  return true;
}

}  // namespace

bool SplitPlainLine(char* line, size_t size, std::vector<std::string_view>* arguments) {
  const char* p = line;
  const char* end = line + size;
  while (true) {
    while (p < end && IsBlank(*p)) ++p;
    if (p == end) return true;
    // The unquoted argument is never longer than what it was read from, so it is written over its
    // own source.
    char* const begin = line + (p - line);
    char* out = begin;
    while (p < end && *p != ' ' && *p != '\t' && *p != '\r' && *p != '\n') {
      if (*p == '"' || *p == '\'') {
        const char quote = *p++;
        if (!CopyQuoted(quote, &p, end, &out)) return false;
        break;
      }
      *out++ = *p++;
    }
    arguments->emplace_back(begin, static_cast<size_t>(out - begin));
  }
}

}  // namespace varve
