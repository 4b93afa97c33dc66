#include "unit-tests/prove/soak/owned_values.h"

#include <charconv>
#include <iterator>

#include "fmt/format.h"
#include "util/base/hash.h"

namespace varve::prove {
namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

// SplitMix64.
uint64_t NextOf(uint64_t* state) {
  uint64_t mixed = *state += kStep;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Takes a number and the byte behind it from the front of the text.
template <typename Number>
bool Take(std::string_view* text, char behind, Number* number) {
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, *number);
  if (error != std::errc() || at == end || *at != behind) return false;
  text->remove_prefix(static_cast<size_t>(at + 1 - text->data()));
  return true;
}

}  // namespace

std::string OwnedPrefix(int owner) { return fmt::format("o{}:", owner); }

std::string OwnedKey(int owner, size_t index) { return fmt::format("o{}:{:06}", owner, index); }

std::optional<size_t> IndexOf(int owner, std::string_view key) {
  const std::string prefix = OwnedPrefix(owner);
  size_t index = 0;
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = key.substr(prefix.size());
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || at != digits.data() + digits.size()) return std::nullopt;
  return index;
}

std::string OwnedValue(Filler filler, std::string_view key, const ValueName& name) {
  std::string value = fmt::format("{}.{}.", name.owner, name.number);
  uint64_t state = HashKey(key) ^ (name.number * kStep);
  const uint64_t kind = NextOf(&state), drawn = NextOf(&state);
  const size_t size = kind % 16 == 0 ? 1024 + drawn % (11 << 10) : 100 + drawn % 924;
  while (value.size() < size) {
    const uint64_t bits = NextOf(&state);
    if (filler == Filler::kJson) {
      fmt::format_to(std::back_inserter(value),
                     R"({{"id":{},"name":"user-{:04x}","active":{},"tags":["north","river"]}})",
                     bits % 100000, (bits >> 20) & 0xffff, (bits & 1) != 0);
    } else {
      value.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    }
  }
  value.resize(size);
  return value;
}

std::optional<ValueName> NameOf(std::string_view value) {
  ValueName name;
  if (!Take(&value, '.', &name.owner) || !Take(&value, '.', &name.number)) return std::nullopt;
  return name;
}

}  // namespace varve::prove
