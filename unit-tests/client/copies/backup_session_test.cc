// Replies to BACKUP that no server should give: none leads out of the directory of the backup, and
// each one ends what was begun.
#include "client/copies/backup_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/client/copies/scripted_server.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string EncodedBulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string StatusReply(std::map<std::string, std::string> fields) {
  std::string reply = "*" + std::to_string(2 * fields.size()) + "\r\n";
  for (const auto& [name, value] : fields) reply += EncodedBulk(name) + EncodedBulk(value);
  return reply;
}

std::string ListReply(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string reply = "*" + std::to_string(files.size()) + "\r\n";
  for (const auto& [name, size] : files) reply += "*2\r\n" + EncodedBulk(name) + size + "\r\n";
  return reply;
}

const std::map<std::string, std::string> kSealed = {
    {"state", "sealed"}, {"error", ""},        {"start_time", "1764099180"},
    {"version", "7"},    {"instant_ms", "99"}, {"end_time", "1764099181"},
    {"store_id", "0a"},  {"history_id", "0b"},
};

class BackupSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = *Client::Connect("127.0.0.1", server_.port());
    session_.emplace(client_.get());
  }

  void Script(const std::string& request, const std::string& reply) {
    const std::lock_guard lock(mutex_);
    replies_[request] = reply;
  }
  std::string Answer(const std::string& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const auto found = replies_.find(request);
    return found == replies_.end() ? "+OK\r\n" : found->second;
  }
  // What GiveUp() asks of the server.
  std::vector<std::string> GivenUp() {
    {
      const std::lock_guard lock(mutex_);
      requests_.clear();
    }
    EXPECT_EQ(session_->GiveUp(absl::DataLossError("why")).code(), absl::StatusCode::kDataLoss);
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  std::mutex mutex_;
  std::map<std::string, std::string> replies_ = {{"BACKUP STATUS", StatusReply(kSealed)}};
  std::vector<std::string> requests_;
  testing::ScriptedServer server_{[this](const std::string& request) { return Answer(request); }};
  std::unique_ptr<Client> client_;
  std::optional<BackupSession> session_;
};

TEST_F(BackupSessionTest, TellsWhatWasSealed) {
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  const absl::StatusOr<BackupSource> source = session_->Source();
  ASSERT_EQ(source.status(), absl::OkStatus());
  EXPECT_EQ(source->store_id, 10u);
  EXPECT_EQ(source->history_id, 11u);
  EXPECT_EQ(source->version, 7u);
  EXPECT_EQ(source->instant_ms, 99u);
  EXPECT_EQ(source->sealed_ms, 1764099181000u);
  EXPECT_THAT(GivenUp(), ElementsAre("BACKUP STATUS", "BACKUP ABORT", "BACKUP CLEANUP"));
}

TEST_F(BackupSessionTest, AFileThatIsNoneIsRefused) {
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  Script("BACKUP LIST SIZES", ListReply({{"000001.seg", ":5"}, {"MANIFEST", ":9"}}));
  EXPECT_EQ(session_->Files()->size(), 2u);
  for (const std::string& reply :
       {ListReply({{"../../etc/passwd", ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{"/etc/passwd", ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{"..", ":5"}, {"MANIFEST", ":9"}}), ListReply({{"", ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{std::string("a\0b", 3), ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{"BACKUP", ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{"a", ":5"}, {"a", ":5"}, {"MANIFEST", ":9"}}),
        ListReply({{"a", ":-5"}, {"MANIFEST", ":9"}}), ListReply({{"a", "+5"}, {"MANIFEST", ":9"}}),
        ListReply({{"MANIFEST", ":9"}, {"a", ":5"}}), ListReply({{"a", ":5"}}), ListReply({}),
        std::string("*1\r\n*1\r\n") + EncodedBulk("MANIFEST"), std::string("+OK\r\n")}) {
    Script("BACKUP LIST SIZES", reply);
    const absl::Status status = session_->Files().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << reply;
    EXPECT_THAT(std::string(status.message()), HasSubstr("BACKUP LIST SIZES makes no sense"));
  }
}

TEST_F(BackupSessionTest, AStatusWithoutSenseIsRefused) {
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  for (const auto& [name, value] : kSealed) {
    if (name == "error") continue;
    for (const std::string& other : {std::string(), std::string("x")}) {
      std::map<std::string, std::string> fields = kSealed;
      fields[name] = other;
      Script("BACKUP STATUS", StatusReply(fields));
      EXPECT_FALSE(session_->Source().ok()) << name << " " << other;
    }
  }
  Script("BACKUP STATUS", "+OK\r\n");
  EXPECT_FALSE(session_->Source().ok());
}

TEST_F(BackupSessionTest, APieceOfAnotherLengthIsDamage) {
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  const SealedFile file{"000001.seg", 10};
  for (const std::string& reply : {EncodedBulk("1234"), EncodedBulk("12345678901"), EncodedBulk(""),
                                   std::string(":10\r\n"), std::string("$-1\r\n")}) {
    Script("BACKUP FETCH 000001.seg 0 10", reply);
    session_->Request(file, 0, 10);
    const absl::Status status = session_->Receive(file, 0, 10).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << reply;
    EXPECT_THAT(std::string(status.message()), HasSubstr("000001.seg"));
  }
}

TEST_F(BackupSessionTest, WhatItDidNotBeginItDoesNotEnd) {
  Script("BACKUP START", "-ERR Backup already in progress\r\n");
  EXPECT_FALSE(session_->Start().ok());
  EXPECT_THAT(GivenUp(), ElementsAre());

  Script("BACKUP START", "+OK\r\n");
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  ASSERT_EQ(session_->Source().status(), absl::OkStatus());
  std::map<std::string, std::string> of_another = kSealed;
  of_another["start_time"] = "1764099190";
  Script("BACKUP STATUS", StatusReply(of_another));
  EXPECT_THAT(GivenUp(), ElementsAre("BACKUP STATUS"));
}

TEST_F(BackupSessionTest, WhatTheServerStillHoldsIsSaid) {
  ASSERT_EQ(session_->Start(), absl::OkStatus());
  Script("BACKUP CLEANUP", "-ERR no\r\n");
  EXPECT_THAT(std::string(session_->Release().message()), HasSubstr("backup-sealed-ttl"));
  EXPECT_THAT(std::string(session_->GiveUp(absl::DataLossError("why")).message()),
              HasSubstr("why; the server may hold"));
}

}  // namespace
}  // namespace varve
