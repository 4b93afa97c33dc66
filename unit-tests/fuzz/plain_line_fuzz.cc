// Plain typed lines: what is read is read again when it is written with every byte escaped. Also
// what people write in flags and settings: sizes, durations and integers.
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/fuzz/fuzz_target.h"
#include "util/base/size_text.h"
#include "util/resp/resp_parser.h"

namespace varve::fuzz {
namespace {

bool Split(std::string_view line, std::vector<std::string>* words) {
  ExactCopy copy(line);
  std::vector<std::string_view> views;
  if (!SplitPlainLine(copy.data(), copy.size(), &views)) return false;
  size_t total = 0;
  for (const std::string_view view : views) {
    VARVE_FUZZ_REQUIRE(view.data() >= copy.data() &&
                       view.data() + view.size() <= copy.data() + copy.size());
    total += view.size();
  }
  VARVE_FUZZ_REQUIRE(total <= line.size());
  words->assign(views.begin(), views.end());
  return true;
}

void RequireNumbersReadBack(std::string_view text) {
  int64_t integer = 0;
  if (ParseRespInteger(text, &integer)) VARVE_FUZZ_REQUIRE(fmt::to_string(integer) == text);
  if (const absl::StatusOr<uint64_t> size = ParseSize(text); size.ok()) {
    const absl::StatusOr<uint64_t> again = ParseSize(FormatSize(*size));
    VARVE_FUZZ_REQUIRE(again.ok() && *again == *size);
  }
  if (const auto duration = ParseDuration(text); duration.ok()) {
    VARVE_FUZZ_REQUIRE(duration->count() >= 0);
    const auto again = ParseDuration(FormatDuration(*duration));
    VARVE_FUZZ_REQUIRE(again.ok() && *again == *duration);
  }
}

void Run(std::string_view line) {
  RequireNumbersReadBack(line);
  std::vector<std::string> words;
  if (!Split(line, &words)) return;
  std::string quoted;
  for (const std::string& word : words) {
    quoted += quoted.empty() ? "\"" : " \"";
    for (const char c : word) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    quoted += '"';
  }
  std::vector<std::string> again;
  VARVE_FUZZ_REQUIRE(Split(quoted, &again));
  VARVE_FUZZ_REQUIRE(again == words);
}

std::vector<std::string> Seeds() {
  return {"GET key",
          "  SET  a\t\"b \\\"c\\\" \\x00\\xff\\n\\r\\t\\b\\a\\q\"  ",
          "'single \\' quote' \"\" ''",
          "\"unbalanced",
          "\"a\"b",
          "a\"b\"",
          "\\x41 \"\\x4\" \"\\xzz\"",
          "64MiB",
          "18446744073709551615",
          "16EiB",
          "200us",
          "292y",
          "-9223372036854775808",
          "9223372036854775807ns",
          "0"};
}

const Announced kTarget({"plain_line", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
