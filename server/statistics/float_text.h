// Conversions of the numbers of INCRBYFLOAT from and to text, as Redis does them on this machine:
// 80-bit floating point.
//
// Thread-safety: The functions are pure.
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
