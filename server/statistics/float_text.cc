#include "server/statistics/float_text.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace varve {
namespace {

// The longest number of 80 bits has 4,932 digits before the point.
constexpr size_t kMaxText = 5 * 1024;

}  // namespace

std::optional<long double> ParseFloat(std::string_view text) {
  if (text.empty() || text.size() >= kMaxText || std::isspace(static_cast<unsigned char>(text[0])))
    return std::nullopt;
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(terminated.c_str(), &end);
  const bool out_of_range = errno == ERANGE && (std::isinf(value) || value == 0);
  if (end != terminated.c_str() + terminated.size() || out_of_range || std::isnan(value))
    return std::nullopt;
  return value;
}

std::string FloatText(long double value) {
  std::string text(kMaxText, '\0');
  const int length = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  text.resize(static_cast<size_t>(length));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace varve
