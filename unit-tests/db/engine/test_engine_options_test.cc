#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>

#include "unit-tests/testing/engine_options.h"

namespace varve::testing {
namespace {

TEST(TestEngineOptionsTest, TheEnvironmentSetsTheWriteBuffer) {
  const char* const text = getenv("VARVE_TEST_WRITE_BUFFER");
  const std::optional<std::string> before =
      text == nullptr ? std::nullopt : std::optional<std::string>(text);
  unsetenv("VARVE_TEST_WRITE_BUFFER");
  EXPECT_EQ(TestEngineOptions().write_buffer_size, EngineOptions().write_buffer_size);
  setenv("VARVE_TEST_WRITE_BUFFER", "64KiB", 1);
  EXPECT_EQ(TestEngineOptions().write_buffer_size, 65536u);
  unsetenv("VARVE_TEST_WRITE_BUFFER");
  if (before) setenv("VARVE_TEST_WRITE_BUFFER", before->c_str(), 1);  // the tests behind this one
}

TEST(TestEngineOptionsDeathTest, AMistypedSizeIsNotIgnored) {
  EXPECT_DEATH(
      {
        setenv("VARVE_TEST_WRITE_BUFFER", "64 apples", 1);
        TestEngineOptions();
      },
      "unknown unit");
}

}  // namespace
}  // namespace varve::testing
