#include <gtest/gtest.h>

#include "unit-tests/testing/engine_options.h"

namespace varve::testing {
namespace {

TEST(TestEngineOptionsTest, TheEnvironmentSetsTheWriteBuffer) {
  unsetenv("VARVE_TEST_WRITE_BUFFER");
  EXPECT_EQ(TestEngineOptions().write_buffer_size, EngineOptions().write_buffer_size);
  setenv("VARVE_TEST_WRITE_BUFFER", "64KiB", 1);
  EXPECT_EQ(TestEngineOptions().write_buffer_size, 65536u);
  unsetenv("VARVE_TEST_WRITE_BUFFER");
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
