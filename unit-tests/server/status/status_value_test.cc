// The status document's values as JSON.
#include "server/status/status_value.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(StatusValueTest, WritesJson) {
  StatusValue map = StatusValue::Map();
  map.Set("integer", StatusValue::Integer(7));
  map.Set("number", StatusValue::Number(0.25));
  map.Set("truth", StatusValue::Truth(true));
  map.Set("list", StatusValue::List().Add(StatusValue::Text("a")).Add(StatusValue::Map()));
  EXPECT_EQ(StatusJson(map), "{\"integer\":7,\"number\":0.25,\"truth\":true,\"list\":[\"a\",{}]}");
}

TEST(StatusValueTest, TextsAreEscapedAndUtf8) {
  EXPECT_EQ(StatusJson(StatusValue::Text("\"\\\n\x01")), "\"\\\"\\\\\\u000a\\u0001\"");
  EXPECT_EQ(StatusJson(StatusValue::Text("\xC3\xA9\xF0\x9F\x98\x80")),
            "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  for (const char* bad : {"\xff", "\xC0", "\xC3", "\xED\xA0\x80", "\xF5\x80\x80\x80"})
    EXPECT_NE(StatusJson(StatusValue::Text(bad)).find("\\ufffd"), std::string::npos);
  EXPECT_EQ(AsUtf8("a\xff"), "a\xEF\xBF\xBD");
  EXPECT_EQ(StatusJson(StatusValue::Number(1.0 / 0.0)), "null");
}

}  // namespace
}  // namespace varve
