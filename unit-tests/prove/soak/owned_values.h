// The keys and values of a soak's clients. A value is made from its key and its number, so that
// nobody has to keep it in order to know each of its bytes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve::prove {

// What a value consists of behind its number: JSON, which compresses well, or bytes that do not
// compress.
enum class Filler : uint8_t { kJson, kBytes };

// Which value it is: the owner's number, and the number of its write.
struct ValueName {
  int owner = 0;
  uint64_t number = 0;
};

// Returns the owner's key of that index.
std::string OwnedKey(int owner, size_t index);
// What all keys of the owner begin with.
std::string OwnedPrefix(int owner);
// Returns the index in a key of the owner; nothing if it is none.
std::optional<size_t> IndexOf(int owner, std::string_view key);

// Returns a value of 100 bytes to 1 KiB, one in sixteen of up to 12 KiB. Its name can be read from
// it.
std::string OwnedValue(Filler filler, std::string_view key, const ValueName& name);
// Returns the name that a value begins with; nothing if it begins with none.
std::optional<ValueName> NameOf(std::string_view value);

}  // namespace varve::prove
