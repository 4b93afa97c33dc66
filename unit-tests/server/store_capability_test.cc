#include "server/execution/store_capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/feed/change_stream.h"
#include "server/http/varve_metrics.h"
#include "unit-tests/server/store_needs.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/map_store.h"
#include "varve/store_status.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Others win the races for its keys as often as a test wants, and one read of a key is not
// answered.
class ContendedStore final : public testing::MapStore {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void LoseRaces(int races) { races_ = races; }
  // The next read of the key fails, and those behind it do not.
  void LoseRead(std::string key) {
    const std::lock_guard lock(noted_mutex_);
    lost_ = std::move(key);
  }
  // Returns the deadlines of the calls since it was asked last.
  std::vector<Time> TakeDeadlines() {
    const std::lock_guard lock(noted_mutex_);
    return std::exchange(deadlines_, {});
  }

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override {
    NoteDeadline(options.deadline);
    if (Loses(key)) return StoreUnavailable("no answer");
    return MapStore::Get(options, key, value);
  }
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override {
    NoteDeadline(options.deadline);
    if (std::any_of(keys.begin(), keys.end(), [this](auto key) { return Loses(key); }))
      return StoreUnavailable("no answer");
    return MapStore::MultiGet(options, keys, results);
  }
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override {
    NoteDeadline(options.deadline);
    if (races_.load() > 0) {
      --races_;
      return absl::AbortedError("the key was written");
    }
    return MapStore::Submit(options, batch);
  }

 private:
  void NoteDeadline(Time deadline) {
    const std::lock_guard lock(noted_mutex_);
    deadlines_.push_back(deadline);
  }
  bool Loses(std::string_view key) {
    const std::lock_guard lock(noted_mutex_);
    if (lost_ != key) return false;
    lost_.reset();
    return true;
  }

  std::atomic<int> races_{0};
  std::mutex noted_mutex_;
  std::optional<std::string> lost_;
  std::vector<Time> deadlines_;
};

// A server over a store that keeps as few promises as one may.
class StoreCapabilityTest : public ::testing::Test {
 protected:
  explicit StoreCapabilityTest(std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    ServerConfig config{.server = {.port = 0}};
    config.store_deadline = deadline;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(&store_, config, {});
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

  ContendedStore store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(StoreCapabilityTest, CommandsOnSingleKeysNeedNothing) {
  EXPECT_FALSE(Call({"SET", "k", "1"}).is_error());
  EXPECT_EQ(Call({"INCR", "k"}).integer, 2);
  EXPECT_EQ(Call({"GET", "k"}).text, "2");
  EXPECT_EQ(Call({"DEL", "k"}).integer, 1);
  EXPECT_EQ(Call({"EXISTS", "k"}).integer, 0);
}

TEST_F(StoreCapabilityTest, EachKeyIsAGroupWhereNoneAreDeclared) {
  EXPECT_THAT(Refusal({"MSET", "a", "1", "b", "2"}), HasSubstr("each key is a group of its own"));
  EXPECT_THAT(Refusal({"RENAME", "a", "b"}), HasSubstr("CROSSGROUP"));
  Call({"SET", "a", "1"});
  Call({"SET", "b", "2"});
  EXPECT_EQ(Call({"MGET", "a", "b", "c"}).elements.size(), 3u);
  EXPECT_EQ(Call({"EXISTS", "a", "b", "c"}).integer, 2);
  EXPECT_EQ(Call({"DEL", "a", "b", "c"}).integer, 2);
}

TEST_F(StoreCapabilityTest, CommandsAndTransactionsAreAtomicWithinADeclaredGroup) {
  Call({"NAMESPACE", "CREATE", "users", "GROUP", ":"});
  Call({"NAMESPACE", "USE", "users"});
  EXPECT_FALSE(Call({"MSET", "a:1", "1", "a:2", "2"}).is_error());
  EXPECT_EQ(Call({"COPY", "a:1", "a:3"}).integer, 1);
  Call({"WATCH", "a:1", "a:9"});
  Call({"MULTI"});
  Call({"INCR", "a:1"});
  Call({"MGET", "a:1", "a:2"});
  const Reply done = Call({"EXEC"});
  ASSERT_EQ(done.elements.size(), 2u);
  EXPECT_EQ(done.elements[0].integer, 2);

  Call({"WATCH", "a:9"});
  Call({"SET", "a:9", "somebody else's"});
  Call({"MULTI"});
  Call({"SET", "a:1", "lost"});
  EXPECT_TRUE(Call({"EXEC"}).is_null());
  EXPECT_EQ(Call({"GET", "a:1"}).text, "2");

  Call({"MULTI"});
  Call({"SET", "a:1", "lost"});
  Call({"SET", "b:1", "lost"});
  EXPECT_THAT(Refusal({"EXEC"}), HasSubstr("CROSSGROUP"));
  EXPECT_EQ(Call({"GET", "a:1"}).text, "2");
  EXPECT_EQ(Call({"EXISTS", "b:1"}).integer, 0);
}

TEST_F(StoreCapabilityTest, ATransactionIsTriedUntilItWins) {
  constexpr int kRaces = 20;  // more than where a store has writers wait
  Call({"SET", "n", "1"});
  Call({"MULTI"});
  Call({"INCR", "n"});
  store_.LoseRaces(kRaces);
  const Reply done = Call({"EXEC"});
  ASSERT_EQ(done.elements.size(), 1u);
  EXPECT_EQ(done.elements[0].integer, 2);
  EXPECT_EQ(Call({"GET", "n"}).text, "2");
}

TEST_F(StoreCapabilityTest, ATransactionThatHasPublishedTellsSoWhenItLosesARace) {
  Call({"SET", "n", "1"});
  Call({"MULTI"});
  Call({"INCR", "n"});
  Call({"PUBLISH", "channel", "message"});
  store_.LoseRaces(1);
  const std::string refusal = Refusal({"EXEC"});
  EXPECT_THAT(refusal, HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(refusal, HasSubstr("no key was written, but"));
  EXPECT_THAT(refusal, Not(HasSubstr("nothing was done")));
  EXPECT_EQ(Call({"GET", "n"}).text, "1");
}

// What a request would write may rest on what another one has read.
TEST_F(StoreCapabilityTest, ATransactionWithAReadThatFailsWritesNothing) {
  Call({"NAMESPACE", "CREATE", "accounts", "GROUP", ":"});
  Call({"NAMESPACE", "USE", "accounts"});
  Call({"MSET", "a:x", "10", "a:y", "0"});
  for (const std::vector<std::string_view>& second :
       std::vector<std::vector<std::string_view>>{{"INCRBY", "a:y", "10"},
                                                  {"MGET", "a:y"},
                                                  {"EXISTS", "a:y"},
                                                  {"SET", "a:y", "10", "XX"},
                                                  {"DEL", "a:y"}}) {
    Call({"MULTI"});
    Call({"DECRBY", "a:x", "10"});
    EXPECT_EQ(client_->Call(second)->text, "QUEUED");
    Call({"SET", "a:z", "written"});
    store_.LoseRead("a:y");
    const std::string refusal = Refusal({"EXEC"});
    EXPECT_THAT(refusal, HasSubstr("UNAVAILABLE no answer")) << second[0];
    EXPECT_THAT(refusal, HasSubstr("nothing of the transaction was written")) << second[0];
    EXPECT_EQ(Call({"GET", "a:x"}).text, "10") << second[0];
    EXPECT_EQ(Call({"GET", "a:y"}).text, "0") << second[0];
    EXPECT_EQ(Call({"EXISTS", "a:z"}).integer, 0) << second[0];
  }
}

TEST_F(StoreCapabilityTest, AllCallsOfACommandHaveOneDeadline) {
  Call({"NAMESPACE", "CREATE", "users", "GROUP", ":"});
  Call({"NAMESPACE", "USE", "users"});
  Call({"MSET", "a:1", "1", "a:2", "2"});
  const auto expect_one = [&](size_t calls) {
    const std::vector<ContendedStore::Time> deadlines = store_.TakeDeadlines();
    ASSERT_GE(deadlines.size(), calls);
    EXPECT_NE(deadlines.front(), ContendedStore::Time::max());
    for (const ContendedStore::Time deadline : deadlines) EXPECT_EQ(deadline, deadlines.front());
  };
  (void)store_.TakeDeadlines();
  Call({"INCR", "a:1"});
  expect_one(2);
  Call({"WATCH", "a:1"});
  (void)store_.TakeDeadlines();
  Call({"MULTI"});
  Call({"INCR", "a:2"});
  Call({"MGET", "a:1", "a:2"});
  Call({"EXEC"});
  expect_one(4);  // the watched key, two reads, the commit
  store_.LoseRaces(1);
  EXPECT_EQ(Call({"DEL", "a:1", "a:2"}).integer, 2);
  expect_one(4);  // two tries
  Call({"SET", "a:1", "1"});
  (void)store_.TakeDeadlines();
  store_.LoseRaces(1);
  Call({"APPEND", "a:1", "2"});
  expect_one(4);
}

// The time of a command is over as soon as it has begun.
class NoTimeTest : public StoreCapabilityTest {
 protected:
  NoTimeTest() : StoreCapabilityTest(std::chrono::milliseconds(0)) {}
};

TEST_F(NoTimeTest, NothingIsTriedAgainBehindTheDeadline) {
  Call({"SET", "n", "1"});
  store_.LoseRaces(1);
  EXPECT_THAT(Refusal({"DEL", "n"}), HasSubstr("UNAVAILABLE"));
  Call({"MULTI"});
  Call({"INCR", "n"});
  store_.LoseRaces(1);
  EXPECT_THAT(Refusal({"EXEC"}), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(Call({"GET", "n"}).text, "1");
}

TEST_F(StoreCapabilityTest, InfoOfANamespaceTellsWhatIsAtomicAndProvided) {
  Call({"NAMESPACE", "CREATE", "users", "GROUP", ":"});
  Call({"NAMESPACE", "USE", "users"});
  Call({"SET", "a:1", "v"});
  for (const std::string_view space : {"users", "0"}) {
    const Reply info = Call({"NAMESPACE", "INFO", space});
    const auto field = [&](std::string_view name) {
      for (size_t i = 0; i + 1 < info.elements.size(); i += 2)
        if (info.elements[i].text == name) return info.elements[i + 1];
      return Reply();
    };
    EXPECT_EQ(field("group").text, space == "users" ? ":" : "");
    EXPECT_EQ(field("keys").integer, space == "users" ? 1 : 0);
    EXPECT_EQ(field("atomicity").text, space == "users" ? "keys of a group" : "single keys");
    EXPECT_EQ(field("provides").elements.size(), 0u);
  }
}

TEST_F(StoreCapabilityTest, InfoReadsAllKeysForThoseWhoAskForIt) {
  Call({"SET", "k", "v"});
  for (const std::string_view section : {"default", "everything", "keyspace"}) {
    const std::string info = Call({"INFO", section}).text;
    EXPECT_EQ(info.find("db0:keys=1") != std::string::npos, section != "default") << section;
  }
}

TEST_F(StoreCapabilityTest, CommandsThatNeedMoreAreRefusedWithAReason) {
  EXPECT_THAT(Refusal({"EXEC"}), HasSubstr("EXEC without MULTI"));
  EXPECT_THAT(Refusal({"NAMESPACE", "CLONE", "0", "copy"}), HasSubstr("can't clone"));
  EXPECT_THAT(Refusal({"NAMESPACE", "CREATE", "n", "MAXKEYS", "3"}), HasSubstr("no quotas"));
  EXPECT_THAT(Refusal({"NAMESPACE", "CREATE", "n", "KEEP", "1d"}), HasSubstr("old versions"));
  EXPECT_THAT(Refusal({"NAMESPACE", "ALTER", "0", "SYNC", "no"}), HasSubstr("other machines"));
  EXPECT_THAT(Refusal({"SWAPDB", "0", "1"}), HasSubstr("can't exchange"));
  EXPECT_THAT(Refusal({"HISTORY", "k"}), HasSubstr("old versions"));
  EXPECT_THAT(Refusal({"CHANGES", "SINCE", "0"}), HasSubstr("feed of changes"));
  EXPECT_THAT(Refusal({"WATCHRANGE", "-", "+"}), HasSubstr("no snapshots"));
  EXPECT_THAT(Refusal({"PURGE", "k"}), HasSubstr("other machines"));
  Call({"MULTI"});
  EXPECT_THAT(Refusal({"DELRANGE", "-", "+"}), HasSubstr("outside of MULTI"));
  EXPECT_THAT(Refusal({"EXEC"}), HasSubstr("EXECABORT"));
}

TEST_F(StoreCapabilityTest, ARangeIsDeletedInSlicesAndKeysAreCountedByReading) {
  constexpr int kKeys = 1100;  // of several slices
  for (int i = 0; i < kKeys; ++i) Call({"SET", "key" + std::to_string(10000 + i), "v"});
  EXPECT_EQ(Call({"DBSIZE"}).integer, kKeys);
  EXPECT_EQ(Call({"COUNT", "-", "+"}).integer, kKeys);
  EXPECT_EQ(Call({"RANGE", "+", "-", "REV", "LIMIT", "0", "2", "KEYS"}).elements.size(), 2u);
  EXPECT_EQ(Call({"RANGE", "-", "+", "KEYS"}).elements.size(), static_cast<size_t>(kKeys));
  EXPECT_FALSE(Call({"DELRANGE", "[key10001", "(key11099"}).is_error());
  EXPECT_EQ(Call({"DBSIZE"}).integer, 2);
  EXPECT_FALSE(Call({"DELPREFIX", "key"}).is_error());
  EXPECT_EQ(Call({"DBSIZE"}).integer, 0);
}

// What the table says of a command is what the server does.
TEST_F(StoreCapabilityTest, CommandsDoWhatTheTableSays) {
  testing::ExpectWhatTheTableSays(*client_, store_.capabilities());
}

TEST_F(StoreCapabilityTest, WhoAsksForChangesIsToldThatTheStoreHasNone) {
  const absl::Status none = store_.GetChangePositions().status();
  EXPECT_THAT(std::string(ExplainNoChanges(store_, none).message()),
              HasSubstr("the store of this server keeps neither old versions nor a feed"));
  const absl::Status other = absl::UnavailableError("no answer");
  EXPECT_EQ(ExplainNoChanges(store_, other), other);
}

TEST_F(StoreCapabilityTest, MetricsHaveNoSizesThatNobodyKnows) {
  MetricsText text(MetricsText::Format::kPlain);
  WriteVarveMetrics(server_->state(), {"user:"}, &text);
  const std::string page = text.Take();
  EXPECT_THAT(page, HasSubstr("varve_build_info"));
  EXPECT_THAT(page, Not(HasSubstr("varve_prefix_bytes")));
}

}  // namespace
}  // namespace varve
