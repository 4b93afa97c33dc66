#include "server/clients/client_name.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(ClientNameTest, NamesArePrintableAndWithoutBlanks) {
  EXPECT_TRUE(CheckClientName("Client names", "worker-1").ok());
  EXPECT_TRUE(CheckClientName("Client names", "").ok());
  for (const char* wrong : {"two words", "line\n", "\x7f", "\xc3\xbc"}) {
    EXPECT_EQ(CheckClientName("Client names", wrong).message(),
              "Client names cannot contain spaces, newlines or special characters.");
  }
}

TEST(ClientNameTest, NamesHaveALongestLength) {
  EXPECT_TRUE(CheckClientName("lib-name", std::string(kMaxClientName, 'x')).ok());
  EXPECT_EQ(CheckClientName("lib-name", std::string(kMaxClientName + 1, 'x')).message(),
            "lib-name cannot have more than 1024 bytes.");
}

TEST(ClientNameTest, AClientIsRenamed) {
  ClientState client;
  RenameClient(&client, "one");
  EXPECT_EQ(client.name, "one");
  RenameClient(&client, "");
  EXPECT_EQ(client.name, "");
}

}  // namespace
}  // namespace varve
