// This header has the suffix of a spare file's name (util/os/spare_files.h), which stands behind
// the name of the file that it was.
//
// Thread-safety: a constant.
#pragma once

#include <string_view>

namespace varve {

inline constexpr std::string_view kSpareSuffix = ".spare";

}  // namespace varve
