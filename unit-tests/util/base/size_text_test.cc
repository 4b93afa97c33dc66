#include "util/base/size_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace varve {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(SizeTextTest, ReadsSizesInBytesAndUnits) {
  EXPECT_EQ(ParseSize("0").value(), 0u);
  EXPECT_EQ(ParseSize("4096").value(), 4096u);
  EXPECT_EQ(ParseSize("7B").value(), 7u);
  EXPECT_EQ(ParseSize("512k").value(), 524'288u);
  EXPECT_EQ(ParseSize("64MiB").value(), 67'108'864u);
  EXPECT_EQ(ParseSize("64 mib").value(), 67'108'864u);
  EXPECT_EQ(ParseSize("1GiB").value(), 1'073'741'824u);
  EXPECT_EQ(ParseSize("10MB").value(), 10'000'000u);
  EXPECT_EQ(ParseSize("2t").value(), 2'199'023'255'552u);
  EXPECT_EQ(ParseSize("1PB").value(), 1'000'000'000'000'000u);
  EXPECT_EQ(ParseSize("18446744073709551615").value(), kMax);
}

TEST(SizeTextTest, RefusesWhatIsNoSizeAndSaysWhy) {
  const auto reason = [](std::string_view text) {
    return std::string(ParseSize(text).status().message());
  };
  EXPECT_THAT(reason(""), HasSubstr("does not begin with a digit"));
  EXPECT_THAT(reason("MiB"), HasSubstr("does not begin with a digit"));
  EXPECT_THAT(reason("-1"), HasSubstr("does not begin with a digit"));
  EXPECT_THAT(reason(" 1"), HasSubstr("does not begin with a digit"));
  EXPECT_THAT(reason("1.5GiB"), HasSubstr("unknown unit \".5GiB\""));
  EXPECT_THAT(reason("5 apples"), HasSubstr("unknown unit \"apples\""));
  EXPECT_THAT(reason("18446744073709551616"), HasSubstr("too large"));
  EXPECT_THAT(reason("16384PiB"), HasSubstr("too large"));
  EXPECT_THAT(reason("5 apples"), HasSubstr("64MiB")) << "says what is accepted";
  EXPECT_EQ(ParseSize("5 apples").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SizeTextTest, FormattedSizesAreExactAndReadBack) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(1024), "1KiB");
  EXPECT_EQ(FormatSize(1536), "1536");
  EXPECT_EQ(FormatSize(67'108'864), "64MiB");
  for (uint64_t size :
       {uint64_t{1}, uint64_t{1023}, uint64_t{1025}, uint64_t{3} << 40, uint64_t{1} << 63, kMax}) {
    EXPECT_EQ(ParseSize(FormatSize(size)).value(), size);
  }
}

TEST(SizeTextTest, ReadsDurations) {
  EXPECT_EQ(ParseDuration("0").value(), 0ns);
  EXPECT_EQ(ParseDuration("15ns").value(), 15ns);
  EXPECT_EQ(ParseDuration("200us").value(), 200us);
  EXPECT_EQ(ParseDuration("5ms").value(), 5ms);
  EXPECT_EQ(ParseDuration("1s").value(), 1s);
  EXPECT_EQ(ParseDuration("10min").value(), 10min);
  EXPECT_EQ(ParseDuration("2H").value(), 2h);
  EXPECT_EQ(ParseDuration("7d").value(), 7 * 24h);
}

TEST(SizeTextTest, RefusesWhatIsNoDurationAndSaysWhy) {
  const auto reason = [](std::string_view text) {
    return std::string(ParseDuration(text).status().message());
  };
  EXPECT_THAT(reason("5"), HasSubstr("unit is missing"));
  EXPECT_THAT(reason("5m"), HasSubstr("unknown unit \"m\"")) << "minutes or milliseconds?";
  EXPECT_THAT(reason("soon"), HasSubstr("does not begin with a digit"));
  EXPECT_THAT(reason("9223372036854775808ns"), HasSubstr("too large"));
  EXPECT_THAT(reason("9999999999h"), HasSubstr("too large"));
}

TEST(SizeTextTest, FormattedDurationsAreExactAndReadBack) {
  EXPECT_EQ(FormatDuration(0ns), "0");
  EXPECT_EQ(FormatDuration(1500us), "1500us");
  EXPECT_EQ(FormatDuration(60s), "1min");
  EXPECT_EQ(FormatDuration(36h), "36h");
  EXPECT_EQ(FormatDuration(48h), "2d");
  for (const std::chrono::nanoseconds duration :
       {std::chrono::nanoseconds(1), std::chrono::nanoseconds(90min),
        std::chrono::nanoseconds::max()}) {
    EXPECT_EQ(ParseDuration(FormatDuration(duration)).value(), duration);
  }
}

}  // namespace
}  // namespace varve
