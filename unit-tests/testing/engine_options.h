// The options with which engine tests open a store: the defaults, changed by the environment, so
// that every engine test runs a second time with write buffers so small that flush and compaction
// happen in it, and with job threads that help them (ctest db_tests_small_buffers).
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include <memory>

#include "unit-tests/testing/eager_picker.h"
#include "util/base/size_text.h"
#include "varve/options.h"

namespace varve::testing {

// Reads VARVE_TEST_WRITE_BUFFER, a size such as 64KiB; ends the program if it is none.
inline EngineOptions TestEngineOptions() {
  EngineOptions options;
  if (const char* text = getenv("VARVE_TEST_WRITE_BUFFER")) {
    const absl::StatusOr<uint64_t> size = ParseSize(text);
    if (!size.ok()) {
      fprintf(stderr, "VARVE_TEST_WRITE_BUFFER: %s\n", size.status().ToString().c_str());
      abort();
    }
    options.write_buffer_size = *size;
    options.compaction_picker = std::make_shared<EagerPicker>();
    options.max_background_jobs = 4;
  }
  return options;
}

}  // namespace varve::testing
