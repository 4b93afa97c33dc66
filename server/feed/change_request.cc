#include "server/feed/change_request.h"

#include <limits>
#include <utility>

#include "server/requests/past_point.h"
#include "util/base/letter_case.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::string_view kSyntax = "syntax error";
// Longer waits are for ever, and instants stay within their type.
constexpr int64_t kLongestBlock = int64_t{1000} * 60 * 60 * 24 * 365;

absl::Status SyntaxError() {
  return absl::InvalidArgumentError(absl::string_view(kSyntax.data(), kSyntax.size()));
}

// Reads what the feed begins with, and removes it from the words.
absl::Status ParseStart(Arguments* words, bool is_stream, ChangeRequest* request) {
  using Start = ChangeRequest::Start;
  Arguments& left = *words;
  if (!is_stream && left.size() == 1 && EqualsIgnoreCase(left[0], "now")) {
    request->start = Start::kNow;
    left.remove_prefix(1);
    return absl::OkStatus();
  }
  if (left.size() < 2) return SyntaxError();
  if (is_stream && EqualsIgnoreCase(left[0], "from") && EqualsIgnoreCase(left[1], "snapshot")) {
    request->start = Start::kSnapshot;
  } else if (!EqualsIgnoreCase(left[0], "since")) {
    return SyntaxError();
  } else if (EqualsIgnoreCase(left[1], "first")) {
    request->start = Start::kFirst;
  } else if (const std::optional<uint64_t> version = ParseCount(left[1])) {
    request->since = *version;
  } else {
    return absl::InvalidArgumentError("SINCE takes a version, or FIRST");
  }
  left.remove_prefix(2);
  return absl::OkStatus();
}

// Reads the range of keys that the words begin with: returns how many words it takes, 0 if they
// begin with something else.
absl::StatusOr<size_t> ParseKeys(Arguments words, KeyRange* range) {
  if (EqualsIgnoreCase(words[0], "prefix") && words.size() > 1) {
    *range = PrefixRange(words[1]);
    return size_t{2};
  }
  if (!EqualsIgnoreCase(words[0], "range") || words.size() < 3) return size_t{0};
  std::optional<KeyRange> parsed = ParseKeyRange(words[1], words[2]);
  if (!parsed) return absl::InvalidArgumentError("min or max not valid string range item");
  *range = *std::move(parsed);
  return size_t{3};
}

// Reads one option that is not about keys, and returns how many words it takes.
absl::StatusOr<size_t> ParseOption(Arguments words, bool is_stream, ChangeRequest* request) {
  const std::string_view option = words[0];
  if (EqualsIgnoreCase(option, "keys")) {
    request->keys_only = true;
    return size_t{1};
  }
  if (EqualsIgnoreCase(option, "prev")) {
    request->with_previous = true;
    return size_t{1};
  }
  if (EqualsIgnoreCase(option, "full")) {
    request->full = true;
    return size_t{1};
  }
  if (words.size() < 2) return SyntaxError();
  if (EqualsIgnoreCase(option, "namespace")) {
    request->all_spaces = EqualsIgnoreCase(words[1], "all");
    request->space.reset();
    if (!request->all_spaces) request->space.emplace(words[1]);
  } else if (!is_stream && EqualsIgnoreCase(option, "count")) {
    VARVE_RETURN_IF_ERROR(ParseChangeCount(words[1], &request->count));
  } else if (!is_stream && EqualsIgnoreCase(option, "block")) {
    VARVE_RETURN_IF_ERROR(ParseChangeBlock(words[1], &request->block));
  } else {
    return SyntaxError();
  }
  return size_t{2};
}

}  // namespace

absl::Status ParseChangeCount(std::string_view text, std::optional<size_t>* count) {
  const std::optional<uint64_t> number = ParseCount(text);
  if (!number || *number == 0) return absl::InvalidArgumentError("COUNT takes an integer above 0");
  *count = static_cast<size_t>(*number);
  return absl::OkStatus();
}

absl::Status ParseChangeBlock(std::string_view text,
                              std::optional<std::chrono::milliseconds>* block) {
  int64_t number = 0;
  if (!ParseRespInteger(text, &number))
    return absl::InvalidArgumentError("timeout is not an integer or out of range");
  if (number < 0) return absl::InvalidArgumentError("timeout is negative");
  block->emplace(number > kLongestBlock ? 0 : number);
  return absl::OkStatus();
}

absl::StatusOr<ChangeRequest> ParseChangeRequest(Arguments words, bool is_stream) {
  ChangeRequest request;
  VARVE_RETURN_IF_ERROR(ParseStart(&words, is_stream, &request));
  bool has_keys = false;
  while (!words.empty()) {
    VARVE_ASSIGN_OR_RETURN(size_t taken, ParseKeys(words, &request.range));
    if (taken > 0 && std::exchange(has_keys, true)) return SyntaxError();
    if (taken == 0) {
      VARVE_ASSIGN_OR_RETURN(taken, ParseOption(words, is_stream, &request));
    }
    words.remove_prefix(taken);
  }
  return request;
}

}  // namespace varve
