// The version of Varve that this is, the same for all its programs.
#pragma once

namespace varve {

inline constexpr const char* kVarveVersion = "0.1.0";

}  // namespace varve
