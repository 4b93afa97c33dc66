// The search for the known name that somebody who mistyped a name most likely meant ("did you mean
// ...?").
//
// Thread-safety: The functions are pure.
#pragma once

#include <span>
#include <string_view>

namespace varve {

// The candidate with the fewest changes of one character (insert, remove, replace) from `text`;
// empty when even that one differs in more than a third of it. Of equals, the first. Takes time of
// the product of the lengths (Wagner and Fischer, 1974).
std::string_view NearestText(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace varve
