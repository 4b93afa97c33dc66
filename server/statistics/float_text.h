// Numbers of INCRBYFLOAT as text, read and written as Redis does on this machine: 80-bit floating
// point. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace varve {

// Decimal, hexadecimal or infinite; nothing for other text, blanks around it, a number out of
// range, and NaN.
std::optional<long double> ParseFloat(std::string_view text);

// All digits before the point, up to 17 behind it, without zeros at the end. `value` is finite.
std::string FloatText(long double value);

}  // namespace varve
