// toml++, set up so that no text can lead it astray. To be included in one file, as it takes long to compile.
//
// toml++ 3.3 meets some wrong texts with an assertion instead of an error, `a = 1979-05-27Tx` for one; and where assertions are compiled
// away it has told the compiler that they hold, which makes such a text undefined behaviour. So its assertions stay, and throw.
#pragma once

#include <exception>

namespace varve {

// A wrong text that toml++ has no better word for.
struct TomlConfusion : std::exception {};
[[noreturn]] inline void ThrowTomlConfusion() { throw TomlConfusion(); }

}  // namespace varve

#define TOML_ASSERT(condition) (static_cast<bool>(condition) ? void(0) : ::varve::ThrowTomlConfusion())
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include "toml++/toml.h"
#pragma pop_macro("NDEBUG")
