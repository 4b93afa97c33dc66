#include "unit-tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"

namespace varve::fuzz {
namespace {

std::vector<Target>& MutableTargets() {
  static auto* const targets = new std::vector<Target>();
  return *targets;
}

constexpr size_t kShown = 600;  // bytes of an input
std::string_view current_input;

}  // namespace

const std::vector<Target>& Targets() { return MutableTargets(); }

void RunTarget(const Target& target, std::string_view input) {
  current_input = input;
  target.run(input);
}

Announced::Announced(Target target) { MutableTargets().push_back(std::move(target)); }

uint8_t Input::Byte() {
  const std::string_view byte = Take(1);
  return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
}

uint16_t Input::Short() {
  const uint8_t low = Byte();
  return static_cast<uint16_t>(low | Byte() << 8);
}

std::string_view Input::Take(size_t bytes) {
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(taken.size());
  return taken;
}

void AppendPiece(std::string_view bytes, std::string* input) {
  input->push_back(static_cast<char>(bytes.size()));
  input->push_back(static_cast<char>(bytes.size() >> 8));
  input->append(bytes);
}

ExactCopy::ExactCopy(std::string_view bytes) : bytes_(bytes.begin(), bytes.end()) {}

void Broken(const char* promise, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
  const std::string_view head = current_input.substr(0, kShown);
  const std::string escaped = absl::CHexEscape(absl::string_view(head.data(), head.size()));
  std::fprintf(stderr, "input (%zu bytes): \"%s\"\n", current_input.size(), escaped.c_str());
  std::abort();
}

}  // namespace varve::fuzz
