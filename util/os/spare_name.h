// What the name of a spare file ends with (util/os/spare_files.h), behind the name of the file that
// it was.
#pragma once

#include <string_view>

namespace varve {

inline constexpr std::string_view kSpareSuffix = ".spare";

}  // namespace varve
