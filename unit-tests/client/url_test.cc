// What a URL says of a server, and what is wrong with one.
#include "client/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ClientOptions Of(std::string_view url) {
  const absl::StatusOr<ClientOptions> options = OptionsOfUrl(url);
  EXPECT_TRUE(options.ok()) << url << ": " << options.status();
  return options.value_or(ClientOptions());
}

std::string Refusal(std::string_view url) {
  const absl::Status status = OptionsOfUrl(url).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << url << ": " << status;
  return std::string(status.message());
}

TEST(UrlTest, NamesHostPortUserPasswordAndDatabase) {
  const ClientOptions options = Of("redis://alice:secret@db.example:6380/3");
  EXPECT_EQ(options.host, "db.example");
  EXPECT_EQ(options.port, 6380);
  EXPECT_EQ(options.user, "alice");
  EXPECT_EQ(options.password, "secret");
  EXPECT_EQ(options.database, 3);
  EXPECT_FALSE(options.tls.enabled);
}

TEST(UrlTest, WhatIsLeftOutHasTheDefault) {
  for (const std::string_view url :
       {"redis://", "redis:///", "redis://127.0.0.1", "redis://:7777"}) {
    const ClientOptions options = Of(url);
    EXPECT_EQ(options.host, "127.0.0.1") << url;
    EXPECT_EQ(options.port, 7777) << url;
    EXPECT_EQ(options.user + options.password, "") << url;
    EXPECT_EQ(options.database, 0) << url;
  }
}

TEST(UrlTest, AloneBeforeTheHostStandsAPassword) {
  EXPECT_EQ(Of("redis://secret@host").password, "secret");
  EXPECT_EQ(Of("redis://secret@host").user, "");
  EXPECT_EQ(Of("redis://:secret@host").password, "secret");
  EXPECT_EQ(Of("redis://a:b@c@host").password, "b@c");
  EXPECT_EQ(Of("redis://a:b@c@host").host, "host");
}

TEST(UrlTest, AnyByteMayBeWrittenInHexadecimal) {
  const ClientOptions options = Of("redis://%c3%a4%3A:p%2F%3f%23%25@h%6Fst");
  EXPECT_EQ(options.user, "ä:");
  EXPECT_EQ(options.password, "p/?#%");
  EXPECT_EQ(options.host, "host");
}

TEST(UrlTest, AnAddressOfVersionSixStandsInBrackets) {
  EXPECT_EQ(Of("redis://[::1]").host, "::1");
  EXPECT_EQ(Of("redis://a:b@[fe80::1]:6379/1").host, "fe80::1");
  EXPECT_EQ(Of("redis://a:b@[fe80::1]:6379/1").port, 6379);
}

TEST(UrlTest, RedissIsWithTls) {
  EXPECT_TRUE(Of("rediss://host").tls.enabled);
  ClientOptions options;
  options.tls.enabled = true;
  options.tls.ca_file = "ca.crt";
  options.unix_socket = "/socket";
  ASSERT_EQ(ApplyUrl("redis://other", &options), absl::OkStatus());
  EXPECT_FALSE(options.tls.enabled);
  EXPECT_EQ(options.unix_socket, "");
  EXPECT_EQ(options.tls.ca_file, "ca.crt");  // what the URL does not name stays
}

TEST(UrlTest, AUnixSocketIsAPath) {
  EXPECT_EQ(Of("unix:///run/varve/a@b.sock").unix_socket, "/run/varve/a@b.sock");
  EXPECT_EQ(Of("unix://here.sock").unix_socket, "here.sock");
  const ClientOptions options = Of("unix://alice:secret@/run/a%20b.sock?db=4");
  EXPECT_EQ(options.unix_socket, "/run/a b.sock");
  EXPECT_EQ(options.user, "alice");
  EXPECT_EQ(options.password, "secret");
  EXPECT_EQ(options.database, 4);
}

TEST(UrlTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Refusal("host:6379"), HasSubstr("redis://, rediss:// or unix://"));
  EXPECT_THAT(Refusal("http://host"), HasSubstr("'http://' is unknown"));
  EXPECT_THAT(Refusal("redis://host:port"), HasSubstr("the port is no number from 0 to 65535"));
  EXPECT_THAT(Refusal("redis://host:65536"), HasSubstr("the port is no number"));
  EXPECT_THAT(Refusal("redis://host/-1"), HasSubstr("the database is no number"));
  EXPECT_THAT(Refusal("redis://host/1/2"), HasSubstr("the database is no number"));
  EXPECT_THAT(Refusal("redis://::1"), HasSubstr("stands in brackets: [::1]"));
  EXPECT_THAT(Refusal("redis://[::1"), HasSubstr("has no ]"));
  EXPECT_THAT(Refusal("redis://[::1]6379"), HasSubstr("may follow ]"));
  EXPECT_THAT(Refusal("redis://[]"), HasSubstr("no address"));
  EXPECT_THAT(Refusal("redis://a%2@host"), HasSubstr("a % in the password"));
  EXPECT_THAT(Refusal("redis://a%00@host"), HasSubstr("the password has a zero byte"));
  EXPECT_THAT(Refusal("redis://alice:@host"), HasSubstr("the user 'alice' has no password"));
  EXPECT_THAT(Refusal("redis://host?timeout=3"), HasSubstr("'timeout=3' is unknown"));
  EXPECT_THAT(Refusal("redis://host/0#x"), HasSubstr("#"));
  EXPECT_THAT(Refusal("unix://"), HasSubstr("the path of a socket"));
}

TEST(UrlTest, NoMessageHasThePassword) {
  for (const std::string_view url :
       {"redis://a:hidden%@host", "redis://a:hid/hidden@host", "redis://a:hid?hidden@host",
        "redis://a:hid#hidden@host", "redis://a:hidden", "redis://a:hidden@host:x"})
    EXPECT_THAT(Refusal(url), Not(HasSubstr("hidden")));
}

TEST(UrlTest, AWrongUrlChangesNothing) {
  ClientOptions options;
  EXPECT_FALSE(ApplyUrl("rediss://alice:secret@other:1/x", &options).ok());
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.user, "");
  EXPECT_FALSE(options.tls.enabled);
}

}  // namespace
}  // namespace varve
