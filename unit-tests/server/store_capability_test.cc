#include "server/execution/store_capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/map_store.h"

namespace varve {
namespace {

using ::testing::HasSubstr;

// A server over a store that keeps as few promises as one may.
class StoreCapabilityTest : public ::testing::Test {
 protected:
  StoreCapabilityTest() {
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(&store_, {.server = {.port = 0}}, {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", server_->port(), std::chrono::seconds(60));
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~StoreCapabilityTest() override { server_->Stop(); }

  // The words of the error that is answered.
  std::string Refusal(std::initializer_list<std::string_view> arguments) {
    const absl::StatusOr<Reply> reply = client_->Call(arguments);
    EXPECT_FALSE(reply.ok());
    return std::string(reply.status().message());
  }
  Reply Call(std::initializer_list<std::string_view> arguments) {
    absl::StatusOr<Reply> reply = client_->Call(arguments);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : Reply();
  }

 private:
  testing::MapStore store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(StoreCapabilityTest, CommandsOnSingleKeysNeedNothing) {
  EXPECT_FALSE(Call({"SET", "k", "1"}).is_error());
  EXPECT_EQ(Call({"INCR", "k"}).integer, 2);
  EXPECT_EQ(Call({"GET", "k"}).text, "2");
  EXPECT_FALSE(Call({"MSET", "a", "1", "b", "2"}).is_error());
  EXPECT_EQ(Call({"DEL", "a"}).integer, 1);
  EXPECT_EQ(Call({"EXISTS", "a"}).integer, 0);
}

TEST_F(StoreCapabilityTest, CommandsThatNeedMoreAreRefusedWithAReason) {
  EXPECT_THAT(Refusal({"MULTI"}), HasSubstr("no transactions over all keys"));
  EXPECT_THAT(Refusal({"EXEC"}), HasSubstr("EXEC without MULTI"));
  EXPECT_THAT(Refusal({"DBSIZE"}), HasSubstr("no exact count"));
  EXPECT_THAT(Refusal({"DELRANGE", "-", "+"}), HasSubstr("can't delete a range"));
  EXPECT_THAT(Refusal({"NAMESPACE", "CLONE", "0", "copy"}), HasSubstr("can't clone"));
}

}  // namespace
}  // namespace varve
