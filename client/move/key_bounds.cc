#include "client/move/key_bounds.h"

namespace varve {

KeyBounds BoundsOfPrefix(std::string_view prefix) {
  KeyBounds bounds;
  if (!prefix.empty()) bounds.min = "[" + std::string(prefix);
  // The first key behind all of them: the prefix with its last byte raised, where that can be.
  const size_t last = prefix.find_last_not_of('\xff');
  if (last == std::string_view::npos) return bounds;
  bounds.max = "(" + std::string(prefix.substr(0, last + 1));
  bounds.max.back() = static_cast<char>(bounds.max.back() + 1);
  return bounds;
}

}  // namespace varve
