// A server over a store that is on other machines. The store withholds its answers until a test
// releases them, and ends the process where an I/O thread calls what may wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/clients/client_login.h"
#include "server/commands/command_table.h"
#include "server/net/remote_rounds.h"
#include "server/remote/remote_run.h"
#include "server/status/server_health.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/server/tls/tls_client.h"
#include "unit-tests/testing/delayed_store.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"
#include "varve/key_group.h"
#include "varve/store_status.h"

namespace varve {
namespace {

using testing::DelayedStore;
using ::testing::HasSubstr;
using testing::IsLoopsThread;
using testing::RawConnection;
using testing::Resp;
using ::testing::StartsWith;

class RemoteStoreTest : public ::testing::Test {
 protected:
  ~RemoteStoreTest() override {
    if (server_ == nullptr) return;
    far_->Release();
    server_->Stop();
  }

  // The store takes no notice of the deadline.
  void Start(ServerOptions options = {},
             std::chrono::milliseconds deadline = std::chrono::hours(1)) {
    absl::StatusOr<std::unique_ptr<StorageEngine>> engine =
        StorageEngine::Open(directory_.File("data"), testing::TestServer::SmallEngine());
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    far_ = std::make_unique<DelayedStore>(engine_.get(), IsLoopsThread);
    options.port = 0;
    if (options.io_threads == 0) options.io_threads = 1;
    ServerConfig config{.server = options};
    config.directory = directory_.File("data");
    config.store_deadline = deadline;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(far_.get(), config);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  DelayedStore& far() { return *far_; }
  StorageEngine& engine() { return *engine_; }
  Server& server() { return *server_; }
  std::unique_ptr<RawConnection> Connect() {
    return std::make_unique<RawConnection>(server_->port());
  }
  StoreWaits::Figures Waits() {
    return server_->state().store_waits.Look(std::chrono::steady_clock::now());
  }
  // Sends the requests in one piece and expects the replies.
  void Expect(std::initializer_list<std::vector<std::string>> requests, std::string_view replies) {
    std::string sent;
    for (const std::vector<std::string>& request : requests) sent += Resp(request);
    const std::unique_ptr<RawConnection> connection = Connect();
    ASSERT_TRUE(connection->Send(sent));
    EXPECT_EQ(connection->Receive(replies.size()), replies);
  }
  // A connection that is answered now, whatever others wait for.
  void ExpectPing() {
    Expect({{"PING"}, {"ECHO", "here"}, {"CLIENT", "SETNAME", "pinging"}, {"SUBSCRIBE", "c"}},
           "+PONG\r\n$4\r\nhere\r\n+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  }
  // Writes behind the server's back, and waits for nothing.
  void PutDirectly(std::string_view key, std::string_view value,
                   NamespaceId space = kDefaultNamespace) {
    WriteBatch batch;
    batch.Put(key, value, space);
    ASSERT_TRUE(engine_->Write({}, &batch).ok());
  }
  std::string GetDirectly(std::string_view key) {
    std::string value;
    const absl::StatusOr<ReadResult> read = engine_->Get({}, key, &value);
    return read.ok() && read->found ? value : "(missing)";
  }
  // Has a client vanish while the first call of that name is withheld, with requests behind it that
  // wait for its end, and then has the store answer.
  void LeaveDuring(const std::string& call, const std::vector<std::string>& request) {
    far().Withhold(call);
    const std::unique_ptr<RawConnection> gone = Connect();
    ASSERT_TRUE(gone->Send(Resp(request) + Resp({"INCR", "m"}) + Resp({"SET", "n", "lost"})));
    far().AwaitWithheld(1);
    gone->Vanish();
    ExpectPing();  // in a round behind its end
    far().Release();
    EXPECT_TRUE(testing::Eventually([&] { return server().state().clients.connected == 0u; }));
    // A thread may still be at what it was given before the reply found nobody.
    EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 0; }));
  }
  void StopServer() {
    server_->Stop();
    server_.reset();
  }

 private:
  testing::TempDir directory_;
  std::unique_ptr<StorageEngine> engine_;
  std::unique_ptr<DelayedStore> far_;
  std::unique_ptr<Server> server_;
};

TEST_F(RemoteStoreTest, AnswersRequestsOfEveryKindInTheirOrder) {
  Start();
  Expect({{"SET", "a", "1"},
          {"GET", "a"},
          {"INCR", "a"},
          {"GET", "a"},
          {"PING"},
          {"SET", "b", "x", "NX"},
          {"MGET", "a", "b", "c"},
          {"EXISTS", "a", "b", "c", "a"},
          {"DEL", "a", "c", "a"},
          {"GET", "a"},
          {"nonsense"},
          {"GET"},
          {"UNLINK", "b"},
          {"EXISTS", "b"},
          {"DBSIZE"},
          {"SELECT", "3"},
          {"SET", "a", "in three"},
          {"STRLEN", "a"}},
         "+OK\r\n$1\r\n1\r\n:2\r\n$1\r\n2\r\n+PONG\r\n+OK\r\n*3\r\n$1\r\n2\r\n$1\r\nx\r\n$-1\r\n"
         ":3\r\n:1\r\n$-1\r\n-ERR unknown command 'nonsense', with args beginning with: \r\n"
         "-ERR wrong number of arguments for 'get' command\r\n:1\r\n:0\r\n:0\r\n+OK\r\n+OK\r\n"
         ":8\r\n");
}

TEST_F(RemoteStoreTest, WhatStandsBehindAReplyThatIsProducedInPiecesComesBehindIt) {
  Start({.reply_slice_bytes = 1});
  Expect({{"SET", "a", "1"},
          {"MULTI"},
          {"SET", "b", "2"},
          {"GET", "a"},
          {"EXEC"},
          {"GET", "b"},
          {"SET", "c", "3"},
          {"RANGE", "-", "+", "KEYS"},
          {"GET", "c"},
          {"DEL", "c"},
          {"KEYS", "*"},
          {"MGET", "a", "c"}},
         "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n+OK\r\n"
         "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\n3\r\n:1\r\n"
         "*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\n1\r\n$-1\r\n");
}

TEST_F(RemoteStoreTest, AnIoThreadAnswersOthersWhileThousandsOfRequestsAreOnTheirWay) {
  constexpr int kReaders = 20, kRequests = 200, kBlocked = 30;
  Start();
  for (int i = 0; i < kRequests; ++i) PutDirectly("k" + std::to_string(i), std::to_string(i));
  far().Withhold();
  std::string gets, replies;
  for (int i = 0; i < kRequests; ++i) {
    const std::string value = std::to_string(i);
    gets += Resp({"GET", "k" + value});
    replies += "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  std::vector<std::unique_ptr<RawConnection>> readers, blocked;
  for (int i = 0; i < kReaders; ++i) {
    ASSERT_TRUE(readers.emplace_back(Connect())->Send(gets));
  }
  for (int i = 0; i < kBlocked; ++i) {
    ASSERT_TRUE(blocked.emplace_back(Connect())->Send(Resp({"INCR", "n"})));
  }
  far().AwaitWithheld(kReaders + kBlocked);
  ExpectPing();
  EXPECT_GE(Waits().in_flight, static_cast<size_t>(kReaders + kBlocked));
  far().Release();
  for (const auto& reader : readers) EXPECT_EQ(reader->Receive(replies.size()), replies);
  for (const auto& connection : blocked) EXPECT_THAT(connection->Receive(4), StartsWith(":"));
  EXPECT_EQ(GetDirectly("n"), std::to_string(kBlocked));
}

TEST_F(RemoteStoreTest, TheRequestsOfABatchGoOutTogether) {
  Start();
  far().Withhold();
  std::string requests, replies;
  for (int i = 0; i < 20; ++i) {
    requests += Resp({"SET", "k" + std::to_string(i), "v"}) + Resp({"GET", "other"});
    replies += "+OK\r\n$-1\r\n";
  }
  const size_t asked = far().asked();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(requests));
  far().AwaitWithheld(21);  // a write for each key, and one read
  EXPECT_EQ(far().asked() - asked, 21u);
  EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 40; }));
  far().Release();
  EXPECT_EQ(connection->Receive(replies.size()), replies);
  EXPECT_GT(far().pushed(), 0u);
  EXPECT_EQ(GetDirectly("k19"), "v");
}

TEST_F(RemoteStoreTest, WhatALimitedUserMayDoGoesOutTogether) {
  Start();
  PutDirectly("a:1", "v");
  Expect({{"ACL", "SETUSER", "limited", "on", "nopass", "~a:*", "+get", "+set"}}, "+OK\r\n");
  const auto connection = Connect();
  // The user is looked up with the first request.
  ASSERT_TRUE(connection->Send(Resp({"AUTH", "limited", "any"}) + Resp({"GET", "a:1"})));
  EXPECT_EQ(connection->Receive(12), "+OK\r\n$1\r\nv\r\n");
  far().Withhold();
  ASSERT_TRUE(connection->Send(Resp({"GET", "a:1"}) + Resp({"SET", "a:2", "w"}) +
                               Resp({"SET", "a:3", "w"}) + Resp({"GET", "b"}) +
                               Resp({"EXISTS", "a:1"}) + Resp({"GET", "a:3"})));
  far().AwaitWithheld(3);
  EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 3; }));
  far().Release();
  const std::string replies =
      "$1\r\nv\r\n+OK\r\n+OK\r\n"
      "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
      "-NOPERM this user has no permissions to run the 'exists' command\r\n$1\r\nw\r\n";
  EXPECT_EQ(connection->Receive(replies.size()), replies);
}

TEST_F(RemoteStoreTest, ClientsOverTlsAreServedAsTheOthers) {
  const testing::TempDir directory;
  testing::TestCertificates certificates(directory.path());
  certificates.Issue("server", {.common_name = "server"});
  ServerOptions options;
  options.tls.mode = TlsMode::kOptional;
  options.tls.certificate_file = certificates.File("server.crt");
  options.tls.key_file = certificates.File("server.key");
  options.tls.client_certificates = TlsClientCertificates::kNo;
  options.tls.reload_seconds = 0;
  Start(options);
  const testing::TlsClient::Options trusting = {.authority = certificates.authority()};
  testing::TlsClient client(server().port(), trusting);
  ASSERT_TRUE(client.connected());
  far().Withhold();
  ASSERT_TRUE(client.Send(Resp({"SET", "a", "1"}) + Resp({"GET", "b"}) + Resp({"INCR", "a"}) +
                          Resp({"PING"}) + Resp({"SET", "c", "3"})));
  far().AwaitWithheld(2);  // what goes out together; the others stand behind it
  // Others over TLS are answered meanwhile, and so are those without.
  testing::TlsClient other(server().port(), trusting);
  ASSERT_TRUE(other.connected());
  EXPECT_EQ(other.Ask(Resp({"PING"}), "+PONG\r\n"), "+PONG\r\n");
  ExpectPing();
  far().Release();
  const std::string replies = "+OK\r\n$-1\r\n:2\r\n+PONG\r\n+OK\r\n";
  EXPECT_EQ(client.Receive(replies.size()), replies);
  EXPECT_EQ(GetDirectly("c"), "3");
  // Replies of many records of TLS, with others behind them.
  const std::string large(1u << 20, 'v');
  const std::string reply = "$1048576\r\n" + large + "\r\n";
  const std::string all = "+OK\r\n" + reply + ":1\r\n" + reply;
  EXPECT_TRUE(client.Ask(Resp({"SET", "large", large}) + Resp({"GET", "large"}) +
                             Resp({"EXISTS", "c"}) + Resp({"GET", "large"}),
                         all) == all);
}

TEST_F(RemoteStoreTest, RangesOfFewKeysGoOutTogetherAndTakeNoThread) {
  Start();
  for (const char* key : {"a:1", "a:2", "a:3", "b:1"}) PutDirectly(key, key);
  const auto on_threads = [this] { return server().state().statistics.batches_pooled.load(); };
  const uint64_t before = on_threads();
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"RANGE", "[a:2", "+", "LIMIT", "0", "2"}) +
                               Resp({"PREFIX", "a:", "LIMIT", "1", "5", "KEYS"}) +
                               Resp({"GET", "a:1"}) +
                               Resp({"RANGE", "+", "-", "REV", "LIMIT", "1", "2", "KEYS"}) +
                               Resp({"PREFIX", "c", "LIMIT", "0", "9"})));
  far().AwaitWithheld(5);
  far().Release();
  const std::string replies =
      "*4\r\n$3\r\na:2\r\n$3\r\na:2\r\n$3\r\na:3\r\n$3\r\na:3\r\n"
      "*2\r\n$3\r\na:2\r\n$3\r\na:3\r\n$3\r\na:1\r\n"
      "*2\r\n$3\r\na:3\r\n$3\r\na:2\r\n*0\r\n";
  EXPECT_EQ(connection->Receive(replies.size()), replies);
  EXPECT_EQ(on_threads(), before);
}

TEST_F(RemoteStoreTest, LocalRequestsBesideARangeTakeNoThread) {
  Start();
  PutDirectly("a", "1");
  const auto on_threads = [this] { return server().state().statistics.batches_pooled.load(); };
  const uint64_t before = on_threads();
  const std::vector<std::string> range = {"RANGE", "-", "+", "KEYS", "LIMIT", "0", "9"};
  Expect({{"PING"}, range, {"ECHO", "e"}, range, {"PING"}},
         "+PONG\r\n*1\r\n$1\r\na\r\n$1\r\ne\r\n*1\r\n$1\r\na\r\n+PONG\r\n");
  EXPECT_EQ(on_threads(), before);
  // COMMAND tells of all commands, which takes long.
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"PING"}) + Resp({"COMMAND", "COUNT"}) + Resp({"PING"})));
  EXPECT_EQ(connection->Receive(8), "+PONG\r\n:");
  EXPECT_TRUE(testing::Eventually([&] { return on_threads() == before + 1; }));
}

TEST_F(RemoteStoreTest, ARangeShowsTheWritesBeforeItAndNoneBehindIt) {
  Start();
  const std::vector<std::string> range = {"RANGE", "-", "+", "KEYS", "LIMIT", "0", "9"};
  Expect({{"SET", "a", "1"}, range, {"SET", "b", "1"}, range, range, {"DEL", "a"}, range},
         "+OK\r\n*1\r\n$1\r\na\r\n+OK\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
         "*2\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n*1\r\n$1\r\nb\r\n");
}

// Requests behind it may have been read together with it.
TEST_F(RemoteStoreTest, ARangeOfLargeValuesIsLeftToAThread) {
  Start();
  std::string array = "*10\r\n";
  for (int i = 0; i < 5; ++i) {
    const std::string key = "k" + std::to_string(i), value(30'000, static_cast<char>('a' + i));
    PutDirectly(key, value);
    array += "$2\r\n" + key + "\r\n$30000\r\n" + value + "\r\n";
  }
  const uint64_t before = server().state().statistics.batches_pooled.load();
  Expect({{"GET", "none"},
          {"RANGE", "-", "+", "LIMIT", "0", "5"},
          {"RANGE", "-", "+", "LIMIT", "0", "1", "KEYS"},
          {"GET", "none"},
          {"SET", "new", "1"},
          {"PREFIX", "new", "KEYS", "LIMIT", "0", "1"}},
         "$-1\r\n" + array + "*1\r\n$2\r\nk0\r\n$-1\r\n+OK\r\n*1\r\n$3\r\nnew\r\n");
  EXPECT_GT(server().state().statistics.batches_pooled.load(), before);
}

TEST_F(RemoteStoreTest, RangesThatAreNotReadAheadAreAnsweredAsAnywhere) {
  Start();
  PutDirectly("a", "1");
  Expect({{"RANGE", "-", "+", "LIMIT", "0", "0"},
          {"RANGE", "-", "+", "LIMIT", "-1", "5"},
          {"RANGE", "-", "+", "LIMIT", "0", "-1"},
          {"RANGE", "-", "+", "LIMIT", "0", "5000"},
          {"RANGE", "[b", "[a", "LIMIT", "0", "5"},
          {"RANGE", "b", "+", "LIMIT", "0", "5"},
          {"RANGE", "-", "+", "LIMIT", "x", "5"},
          {"RANGE", "-", "+", "LIMIT", "0"},
          {"RANGE", "-", "+", "SINCE", "x", "LIMIT", "0", "5"},
          {"PREFIX", "a", "WITHEXPIRY", "WITHMETA", "LIMIT", "0", "5"}},
         "*0\r\n*0\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*0\r\n"
         "-ERR min or max not valid string range item\r\n"
         "-ERR value is not an integer or out of range\r\n-ERR syntax error\r\n"
         "-ERR SINCE takes a version, which is an integer\r\n"
         "*4\r\n$1\r\na\r\n$1\r\n1\r\n:-1\r\n$-1\r\n");
}

TEST_F(RemoteStoreTest, ALimitedUserSeesOfARangeWhatItMayRead) {
  Start();
  for (const char* key : {"a:1", "b:1"}) PutDirectly(key, "v");
  Expect({{"ACL", "SETUSER", "limited", "on", "nopass", "~a:*", "+range"}}, "+OK\r\n");
  Expect({{"AUTH", "limited", "any"}, {"RANGE", "-", "+", "LIMIT", "0", "9", "KEYS"}},
         "+OK\r\n*1\r\n$3\r\na:1\r\n");
}

TEST_F(RemoteStoreTest, OfSeveralSetsOfAKeyTheLastOneIsSent) {
  Start();
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"SET", "k", "1"}) + Resp({"SET", "k", "2"}) +
                               Resp({"SET", "other", "x"}) + Resp({"SET", "k", "3"})));
  far().AwaitWithheld(2);
  far().Release();
  EXPECT_EQ(connection->Receive(20), "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
  EXPECT_EQ(GetDirectly("k"), "3");
}

TEST_F(RemoteStoreTest, ADeletionOfWhatIsWrittenMeanwhileTriesAgain) {
  Start();
  PutDirectly("k", "old");
  PutDirectly("other", "x");
  far().Withhold("write");
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"DEL", "k", "other", "missing"})));
  far().AwaitWithheld(1);  // both in one step, as the keys have no groups here
  PutDirectly("k", "new");
  far().Release();
  EXPECT_EQ(connection->Receive(4), ":2\r\n");
  EXPECT_EQ(GetDirectly("k"), "(missing)");
  EXPECT_EQ(GetDirectly("other"), "(missing)");
}

TEST_F(RemoteStoreTest, ADeletionGoesGroupByGroup) {
  Start();
  constexpr NamespaceId kUsers = kFirstNamedNamespace;
  WriteBatch batch;
  batch.CreateNamespace(
      {.id = kUsers, .name = "users", .options = {.grouping = KeyGrouping::By(':')}});
  ASSERT_TRUE(engine().Write({}, &batch).ok());
  for (const char* key : {"a:1", "a:2", "b:1", "c"}) PutDirectly(key, "v", kUsers);
  far().Withhold("write");
  const auto connection = Connect();
  ASSERT_TRUE(
      connection->Send(Resp({"NAMESPACE", "USE", "users"}) +
                       Resp({"DEL", "a:2", "b:1", "missing:1", "a:1", "a:missing", "a:1", "d"}) +
                       Resp({"EXISTS", "a:1", "a:2", "b:1", "c"})));
  far().AwaitWithheld(2);  // the keys of a together, and that of b
  EXPECT_EQ(far().withheld(), 2u);
  PutDirectly("a:missing", "now there", kUsers);
  far().Release();
  EXPECT_EQ(connection->Receive(13), "+OK\r\n:4\r\n:1\r\n") << "the whole group was tried again";
}

TEST_F(RemoteStoreTest, ASetThatMayBeRefusedTakesNoOtherWithIt) {
  Start();
  const std::string large(2000, 'v');
  for (const bool large_first : {true, false}) {
    far().Withhold();
    const auto connection = Connect();
    ASSERT_TRUE(connection->Send(Resp({"SET", "k", large_first ? large : "small"}) +
                                 Resp({"SET", "k", large_first ? "small" : large})));
    far().AwaitWithheld(1);
    EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 1; })) << "by itself";
    far().Release();
    EXPECT_EQ(connection->Receive(10), "+OK\r\n+OK\r\n");
    EXPECT_EQ(GetDirectly("k"), large_first ? "small" : large);
  }
}

// A run is answered by the loop as soon as it has heard of the last answer. What the store's thread
// still holds then, and the loop that it wakes, may be gone once the server has stopped.
TEST_F(RemoteStoreTest, ARunIsAnsweredOnceTheStoresThreadIsThroughWithIt) {
  // Stays for as long as the answer does, but not for ever.
  class Held {
   public:
    Held(const std::atomic<bool>* answered, std::atomic<bool>* went_first)
        : answered_(*answered), went_first_(*went_first) {}
    ~Held() {
      for (int i = 0; i < 50'000 && !answered_; ++i) std::this_thread::yield();
      went_first_ = !answered_;
    }

   private:
    const std::atomic<bool>& answered_;
    std::atomic<bool>& went_first_;
  };
  Start();
  PutDirectly("k", "v");
  ClientState client;
  BecomeDefaultUser(&client, server().state().clients.users);
  RequestBatch batch;
  batch.arguments = {"GET", "k"};
  batch.requests.push_back({FindCommand("get"), 0, 2});
  BatchCursor cursor{.client = &client, .batch = &batch};
  const std::shared_ptr<RemoteRun> run = RemoteRun::Take(&server().state(), &cursor);
  ASSERT_NE(run, nullptr);
  absl::Notification told;
  std::atomic<bool> answered{false}, went_first{false};
  run->Send([&told, held = std::make_shared<Held>(&answered, &went_first)] { told.Notify(); });
  told.WaitForNotification();
  PendingReplies replies;
  EXPECT_TRUE(run->Answer(&replies));
  answered = true;
  EXPECT_TRUE(went_first);
  EXPECT_EQ(replies.bytes().view(), "$1\r\nv\r\n");
}

TEST_F(RemoteStoreTest, LargeValuesAreReadAFewAtATime) {
  Start();
  std::vector<std::string> values;
  std::string requests, replies, array = "*8\r\n";
  std::vector<std::string> all = {"MGET"};
  for (size_t i = 0; i < 8; ++i) {
    // Among them some that are too large to be read with others.
    values.emplace_back(i % 3 == 1 ? 3u << 20 : 700u << 10, static_cast<char>('a' + i));
    const std::string key = "k" + std::to_string(i);
    PutDirectly(key, values.back());
    requests += Resp({"GET", key}) + Resp({"EXISTS", key});
    const std::string bulk = "$" + std::to_string(values[i].size()) + "\r\n" + values[i] + "\r\n";
    replies += bulk + ":1\r\n";
    array += bulk;
    all.push_back(key);
  }
  requests += Resp(all) + Resp({"PING"});
  replies += array + "+PONG\r\n";
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(requests));
  EXPECT_TRUE(connection->Receive(replies.size()) == replies);
}

TEST_F(RemoteStoreTest, TransactionsAndScansWaitOnThreads) {
  Start();
  Expect({{"MULTI"}, {"SET", "a", "1"}, {"GET", "a"}, {"EXEC"}, {"GET", "a"}},
         "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n$1\r\n1\r\n");
  for (int i = 0; i < 300; ++i) PutDirectly("p" + std::to_string(1000 + i), "v");
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"KEYS", "p*"})));
  EXPECT_THAT(connection->Receive(2000), StartsWith("*300\r\n$5\r\np1000\r\n$5\r\np1001\r\n"));
  Expect({{"WATCH", "w"}, {"SET", "w", "1"}, {"MULTI"}, {"SET", "w", "2"}, {"EXEC"}},
         "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(GetDirectly("w"), "1");
}

TEST_F(RemoteStoreTest, BeyondTheLimitBatchesWaitAndNothingIsLost) {
  constexpr int kConnections = 40, kRequests = 1000;
  Start();
  PutDirectly("k", "v");
  far().Withhold();
  std::string gets, replies;
  for (int i = 0; i < kRequests; ++i) {
    gets += Resp({"GET", "k"});
    replies += "$1\r\nv\r\n";
  }
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < kConnections; ++i) {
    ASSERT_TRUE(connections.emplace_back(Connect())->Send(gets));
  }
  ASSERT_TRUE(testing::Eventually([&] { return Waits().waiting > 0; }));
  ExpectPing();
  EXPECT_GE(Waits().in_flight, RemoteRounds::kMostInFlight);
  EXPECT_LT(Waits().in_flight, RemoteRounds::kMostInFlight + RemoteRun::kMaxRequests);
  connections.back()->Vanish();
  connections.pop_back();
  far().Release();
  for (const auto& connection : connections)
    EXPECT_EQ(connection->Receive(replies.size()), replies);
  ASSERT_TRUE(testing::Eventually([&] { return Waits().in_flight + Waits().waiting == 0; }));
}

TEST_F(RemoteStoreTest, ThoseWhoWaitForRoomKeepTheirOrder) {
  constexpr int kLoops = 16;
  constexpr size_t kMany = 1000, kMost = RemoteRounds::kMostInFlight / kLoops;
  static_assert(2 + kMany < kMost && 2 * kMany > kMost);
  Start({.io_threads = kLoops});
  far().Withhold();
  std::vector<std::unique_ptr<RawConnection>> connections, elsewhere;
  const auto send = [&](const std::string& requests) {
    // All on one loop, as connections go to one loop after the other.
    ASSERT_TRUE(connections.emplace_back(Connect())->Send(requests));
    for (int i = 1; i < kLoops; ++i) elsewhere.push_back(Connect());
  };
  const std::string one = Resp({"GET", "k"});
  std::string many;
  for (size_t i = 0; i < kMany; ++i) many += one;
  size_t asked = 0;
  for (const std::string& requests : {one, one, many, many}) {
    send(requests);
    far().AwaitWithheld(++asked);
  }
  ASSERT_TRUE(testing::Eventually([&] { return Waits().in_flight == 2 + 2 * kMany; }));
  for (size_t i = 1; i <= 3; ++i) {
    send(Resp({"SET", "k", std::to_string(i)}));
    ASSERT_TRUE(testing::Eventually([&] { return Waits().waiting == i; }));
  }
  // So little ends that there is still no room.
  for (size_t i = 0; i < 2; ++i) {
    far().ReleaseFirst();
    EXPECT_EQ(connections[i]->Receive(5), "$-1\r\n");
  }
  ExpectPing();
  far().Release();
  for (size_t i = 4; i < connections.size(); ++i) EXPECT_EQ(connections[i]->Receive(5), "+OK\r\n");
  EXPECT_EQ(GetDirectly("k"), "3");
}

TEST_F(RemoteStoreTest, NoMoreThreadsWaitThanTheSettingAllows) {
  Start({.store_threads = 3});
  far().Withhold();
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(connections.emplace_back(Connect())->Send(Resp({"INCR", "n"})));
  }
  ASSERT_TRUE(testing::Eventually([&] { return Waits().in_flight == 10; }));
  far().AwaitWithheld(3);
  EXPECT_EQ(far().withheld(), 3u);
  ExpectPing();
  far().Release();
  for (const auto& connection : connections) EXPECT_THAT(connection->Receive(4), StartsWith(":"));
  EXPECT_EQ(GetDirectly("n"), "10");
}

// --- Keys that are away --------------------------------------------------------------------------

constexpr std::string_view kAwayError =
    "-UNAVAILABLE the machine that has the key does not answer, and many requests wait for it: "
    "nothing was done, and it may be tried again\r\n";

TEST_F(RemoteStoreTest, KeysThatAreAwayHoldUpNoOthersOfTheirPipeline) {
  Start();
  PutDirectly("live", "v");
  far().SetAway("dead");
  far().Withhold(/*only=*/"", /*prefix=*/"dead");
  const auto connection = Connect();
  ASSERT_TRUE(
      connection->Send(Resp({"GET", "live"}) + Resp({"GET", "dead"}) + Resp({"EXISTS", "live"})));
  EXPECT_EQ(connection->Receive(7), "$1\r\nv\r\n");
  far().AwaitWithheld(1);
  far().Release();
  EXPECT_EQ(connection->Receive(9), "$-1\r\n:1\r\n");
}

TEST_F(RemoteStoreTest, ARangeThatBeginsAtKeysThatAreAwayHoldsUpNoOthersOfItsPipeline) {
  Start();
  PutDirectly("live", "v");
  far().SetAway("dead");
  const auto connection = Connect();
  for (const std::vector<std::string>& range :
       {std::vector<std::string>{"RANGE", "[dead", "[dead:9", "LIMIT", "0", "5"},
        {"PREFIX", "dead", "LIMIT", "0", "5"},
        {"RANGE", "(dead:9", "[dead", "REV", "LIMIT", "0", "5"}}) {
    far().Withhold(/*only=*/"range");
    ASSERT_TRUE(connection->Send(Resp({"GET", "live"}) + Resp(range) + Resp({"EXISTS", "live"})));
    EXPECT_EQ(connection->Receive(7), "$1\r\nv\r\n") << range.front();
    far().AwaitWithheld(1);
    far().Release();
    EXPECT_EQ(connection->Receive(8), "*0\r\n:1\r\n");
  }
}

TEST_F(RemoteStoreTest, KeysThatAreAwayTakeHalfOfTheThreads) {
  Start({.store_threads = 4});
  far().SetAway("dead");
  far().Withhold(/*only=*/"", /*prefix=*/"dead");
  std::vector<std::unique_ptr<RawConnection>> stuck;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stuck.emplace_back(Connect())->Send(Resp({"INCR", "dead:" + std::to_string(i)})));
  }
  far().AwaitWithheld(2);
  const std::string error(kAwayError);
  const std::string discarded = "-EXECABORT Transaction discarded because of: " + error.substr(1);
  Expect({{"INCR", "dead:2"},
          {"INCR", "live"},
          {"MULTI"},
          {"INCR", "dead:3"},
          {"EXEC"},
          {"EXEC"},
          {"MULTI"},
          {"RANGE", "[dead", "[dead:9"},
          {"EXEC"},
          {"GET", "live"}},
         error + ":1\r\n+OK\r\n+QUEUED\r\n" + discarded + "-ERR EXEC without MULTI\r\n" +
             "+OK\r\n+QUEUED\r\n" + discarded + "$1\r\n1\r\n");
  far().Release();
  for (const auto& connection : stuck) EXPECT_EQ(connection->Receive(4), ":1\r\n");
  EXPECT_EQ(GetDirectly("dead:2"), "(missing)");
}

TEST_F(RemoteStoreTest, WhatIsAwayWhenItsTurnForAThreadComesGivesItBack) {
  Start({.store_threads = 1});
  far().Withhold(/*only=*/"", /*prefix=*/"dead");
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        connections.emplace_back(Connect())->Send(Resp({"INCR", "dead:" + std::to_string(i)})));
    ASSERT_TRUE(testing::Eventually([&] { return Waits().in_flight == i + 1; }));
  }
  far().SetAway("dead");
  for (int call = 0; call < 2; ++call) {  // the update, and the read inside
    far().AwaitWithheld(1);
    far().ReleaseFirst();
  }
  EXPECT_EQ(connections[0]->Receive(4), ":1\r\n");
  // One of the others takes the thread that those have which are away.
  EXPECT_EQ(connections[2]->Receive(kAwayError.size()), kAwayError);
  far().AwaitWithheld(1);
  far().Release();
  EXPECT_EQ(connections[1]->Receive(4), ":1\r\n");
}

TEST_F(RemoteStoreTest, KeysThatAreAwayHaveRoomOfTheirOwn) {
  constexpr int kLoops = 16;
  constexpr size_t kMost = RemoteRounds::kMostInFlight / kLoops / 2;
  static_assert(kMost < RemoteRun::kMaxRequests);
  Start({.io_threads = kLoops});
  far().SetAway("dead");
  far().Withhold(/*only=*/"", /*prefix=*/"dead");
  std::string many, replies;
  for (size_t i = 0; i < kMost; ++i) {
    many += Resp({"GET", "dead"});
    replies += "$-1\r\n";
  }
  const auto stuck = Connect();
  ASSERT_TRUE(stuck->Send(many));
  ASSERT_TRUE(testing::Eventually([&] { return Waits().in_flight == kMost; }));
  std::vector<std::unique_ptr<RawConnection>> elsewhere;  // one on each other loop
  for (int i = 1; i < kLoops; ++i) elsewhere.push_back(Connect());
  Expect({{"GET", "dead"}, {"GET", "live"}, {"MGET", "live", "dead"}},
         std::string(kAwayError) + "$-1\r\n" + std::string(kAwayError));
  far().Release();
  EXPECT_EQ(stuck->Receive(replies.size()), replies);
  EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 0; }));
}

// The machine has died just now, and nobody knows it yet.
TEST_F(RemoteStoreTest, WhatIsNotAnsweredInTimeLeavesItsRoomToOthers) {
  constexpr int kLoops = 16;
  constexpr size_t kMany = 1000, kMost = RemoteRounds::kMostInFlight / kLoops;
  static_assert(kMany < kMost && 2 * kMany > kMost);
  Start({.io_threads = kLoops}, /*deadline=*/std::chrono::milliseconds(30));
  far().Withhold(/*only=*/"", /*prefix=*/"dead");
  std::string many, replies;
  for (size_t i = 0; i < kMany; ++i) {
    many += Resp({"GET", "dead"});
    replies += "$-1\r\n";
  }
  std::vector<std::unique_ptr<RawConnection>> stuck, elsewhere;
  for (size_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(stuck.emplace_back(Connect())->Send(many));
    far().AwaitWithheld(i);
    for (int other = 1; other < kLoops; ++other) elsewhere.push_back(Connect());
  }
  Expect({{"GET", "live"}, {"INCR", "live"}}, "$-1\r\n:1\r\n");
  EXPECT_EQ(far().withheld(), 2u);
  far().Release();
  for (const auto& connection : stuck) EXPECT_EQ(connection->Receive(replies.size()), replies);
}

TEST_F(RemoteStoreTest, BatchesThatHoldManyBytesHaveOthersWait) {
  constexpr int kLoops = 16;
  constexpr size_t kLarge = RemoteRounds::kMostBytes / kLoops / 2 + 1;
  Start({.io_threads = kLoops});
  far().Withhold("write");
  const std::string large(kLarge, 'v');
  std::vector<std::unique_ptr<RawConnection>> connections, elsewhere;
  const auto set = [&](const std::string& key, const std::string& value) {
    ASSERT_TRUE(connections.emplace_back(Connect())->Send(Resp({"SET", key, value})));
    for (int i = 1; i < kLoops; ++i) elsewhere.push_back(Connect());
  };
  for (size_t i = 1; i <= 2; ++i) {
    set("k" + std::to_string(i), large);
    far().AwaitWithheld(i);
  }
  set("k3", "small");
  ASSERT_TRUE(testing::Eventually([&] { return Waits().waiting == 1; }));
  ExpectPing();
  far().Release();
  for (const auto& connection : connections) EXPECT_EQ(connection->Receive(5), "+OK\r\n");
  EXPECT_EQ(GetDirectly("k3"), "small");
}

TEST_F(RemoteStoreTest, AMissedDeadlineIsTold) {
  Start();
  PutDirectly("k", "v");
  far().FailWith(StoreUnavailable("the cluster has not answered within 30 s"));
  const std::string error = "-UNAVAILABLE the cluster has not answered within 30 s\r\n";
  Expect({{"GET", "k"},
          {"SET", "k", "x"},
          {"DEL", "k"},
          {"EXISTS", "k"},
          {"INCR", "n"},
          {"APPEND", "k", "x"},
          {"RANGE", "-", "+", "LIMIT", "0", "1"},
          {"PING"}},
         error + error + error + error + error + error + error + "+PONG\r\n");
  Expect({{"MGET", "k", "l"}}, "*2\r\n" + error + error);
  Expect({{"MULTI"}, {"SET", "k", "x"}, {"EXEC"}}, "+OK\r\n+QUEUED\r\n" + error);
  far().FailWith(absl::OkStatus());
  Expect({{"GET", "k"}}, "$1\r\nv\r\n");
}

TEST_F(RemoteStoreTest, AClientThatGoesMeanwhileLeavesNothingBehind) {
  Start();
  far().Withhold();
  auto gone = Connect();
  ASSERT_TRUE(gone->Send(Resp({"SET", "gone", "1"}) + Resp({"DEL", "gone"})));
  auto blocked = Connect();
  ASSERT_TRUE(blocked->Send(Resp({"INCR", "n"})));
  const auto killed = Connect();
  ASSERT_TRUE(killed->Send(Resp({"CLIENT", "SETNAME", "victim"}) + Resp({"GET", "k"})));
  EXPECT_EQ(killed->Receive(5), "+OK\r\n");
  far().AwaitWithheld(3);
  gone->Vanish();
  blocked->Vanish();
  const auto other = Connect();
  ASSERT_TRUE(other->Send(Resp({"CLIENT", "KILL", "SKIPME", "yes"})));
  EXPECT_THAT(other->Receive(4), StartsWith(":"));
  EXPECT_EQ(killed->ReceiveAll(), "");
  EXPECT_TRUE(killed->closed());
  far().Release();
  ASSERT_TRUE(testing::Eventually([&] { return server().state().clients.connected == 1u; }));
  EXPECT_TRUE(testing::Eventually([&] { return Waits().in_flight == 0u; }));
  EXPECT_EQ(GetDirectly("gone"), "1") << "what was asked for is done, what was not is not";
}

TEST_F(RemoteStoreTest, AThreadWaitsForOneRequestAndItsReplyLeavesBeforeTheNext) {
  Start();
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"INCR", "n"}) + Resp({"PING"}) + Resp({"INCR", "n"})));
  for (int call = 0; call < 2; ++call) {  // the update, and the read inside
    far().AwaitWithheld(1);
    far().ReleaseFirst();
  }
  EXPECT_EQ(connection->Receive(11), ":1\r\n+PONG\r\n");
  far().AwaitWithheld(1);
  EXPECT_EQ(GetDirectly("n"), "1");
  far().Release();
  EXPECT_EQ(connection->Receive(4), ":2\r\n");
}

TEST_F(RemoteStoreTest, NothingMoreIsWaitedForWhereTheClientHasGone) {
  Start();
  PutDirectly("n", "0");
  LeaveDuring("blocking", {"INCR", "n"});
  EXPECT_EQ(GetDirectly("n"), "1");
  EXPECT_EQ(GetDirectly("m"), "(missing)");
}

TEST_F(RemoteStoreTest, NothingMoreIsAskedTogetherWhereTheClientHasGone) {
  Start();
  PutDirectly("n", "0");
  LeaveDuring("write", {"DEL", "n"});
  EXPECT_EQ(GetDirectly("n"), "(missing)");
  EXPECT_EQ(GetDirectly("m"), "(missing)");
}

TEST_F(RemoteStoreTest, QuitClosesBehindTheRepliesBeforeIt) {
  Start();
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"SET", "k", "1"}) + Resp({"QUIT"}) + Resp({"GET", "k"})));
  far().AwaitWithheld(1);
  far().Release();
  EXPECT_EQ(connection->ReceiveAll(), "+OK\r\n+OK\r\n");
  EXPECT_TRUE(connection->closed());
}

TEST_F(RemoteStoreTest, RepliesThatAClientDoesNotWantAreLeftOut) {
  Start();
  Expect({{"SET", "k", "v"},
          {"CLIENT", "REPLY", "OFF"},
          {"GET", "k"},
          {"INCR", "n"},
          {"DEL", "k"},
          {"CLIENT", "REPLY", "ON"},
          {"GET", "k"},
          {"GET", "n"}},
         "+OK\r\n+OK\r\n$-1\r\n$1\r\n1\r\n");
  Expect({{"CLIENT", "REPLY", "SKIP"}, {"GET", "n"}, {"GET", "n"}}, "$1\r\n1\r\n");
}

TEST_F(RemoteStoreTest, AHalfClosedClientGetsItsReplies) {
  Start();
  PutDirectly("k", "v");
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"GET", "k"}) + Resp({"INCR", "n"})));
  connection->FinishSending();
  far().AwaitWithheld(1);
  far().Release();
  EXPECT_EQ(connection->ReceiveAll(), "$1\r\nv\r\n:1\r\n");
}

TEST_F(RemoteStoreTest, AStopAnswersWhatWasRead) {
  Start();
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"SET", "k", "1"}) + Resp({"INCR", "k"})));
  far().AwaitWithheld(1);
  std::thread stopping([&] { server().Stop(); });
  ASSERT_TRUE(testing::Eventually([&] { return server().state().draining.load(); }));
  far().Release();
  stopping.join();
  EXPECT_EQ(connection->ReceiveAll(), "+OK\r\n:2\r\n");
}

TEST_F(RemoteStoreTest, AStopDoesNotWaitLongerThanTheSettingAllows) {
  Start({.drain_timeout = std::chrono::milliseconds(1)});
  far().Withhold();
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        connections.emplace_back(Connect())->Send(Resp({"SET", "k", "1"}) + Resp({"GET", "l"})));
  }
  far().AwaitWithheld(20);
  StopServer();
  for (const auto& connection : connections) EXPECT_EQ(connection->ReceiveAll(), "");
  far().Release();  // the answers find nobody
}

TEST_F(RemoteStoreTest, AStopHasTheStoreEndWhatNobodyWaitsFor) {
  Start({.drain_timeout = std::chrono::milliseconds(1)});
  far().Withhold("blocking count");
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"DBSIZE"})));
  far().AwaitWithheld(1);
  size_t told = 0;
  far().when_closing = [&] {
    ++told;
    far().Release();
  };
  StopServer();  // it would wait for the count for ever if the store were not told
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(connection->ReceiveAll(), "");
}

TEST_F(RemoteStoreTest, ThoseWhoTrackAKeyHearOfItsWrites) {
  Start();
  PutDirectly("k", "v");
  PutDirectly("l", "v");
  const auto tracking = Connect();
  ASSERT_TRUE(tracking->Send(Resp({"HELLO", "3"}) + Resp({"CLIENT", "TRACKING", "on"}) +
                             Resp({"MGET", "k", "l"})));
  std::string replies;
  while (!replies.ends_with("*2\r\n$1\r\nv\r\n$1\r\nv\r\n") && !tracking->closed())
    replies += tracking->Receive(1);
  const std::string message = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n";
  Expect({{"SET", "k", "new"}}, "+OK\r\n");
  EXPECT_EQ(tracking->Receive(message.size() + 3), message + "k\r\n");
  Expect({{"DEL", "l"}}, ":1\r\n");
  EXPECT_EQ(tracking->Receive(message.size() + 3), message + "l\r\n");
}

TEST_F(RemoteStoreTest, TheStatusSaysThatRequestsWaitForTheStore) {
  Start();
  const auto limit = [&] {
    ServerState& state = server().state();
    return std::string(LimitOf(LookAtLoad(state, state.store->Observe())).id);
  };
  EXPECT_EQ(limit(), "nothing");
  far().Withhold();
  const auto connection = Connect();
  ASSERT_TRUE(connection->Send(Resp({"GET", "k"})));
  far().AwaitWithheld(1);
  EXPECT_TRUE(testing::Eventually([&] { return limit() == "store"; }));
}

TEST_F(RemoteStoreTest, APauseHoldsRequestsUp) {
  Start();
  Expect({{"CLIENT", "PAUSE", "100000", "WRITE"}}, "+OK\r\n");
  const auto writing = Connect();
  ASSERT_TRUE(writing->Send(Resp({"GET", "k"}) + Resp({"SET", "k", "1"}) + Resp({"GET", "k"})));
  EXPECT_EQ(writing->Receive(5), "$-1\r\n");
  EXPECT_EQ(GetDirectly("k"), "(missing)");
  Expect({{"CLIENT", "UNPAUSE"}}, "+OK\r\n");
  EXPECT_EQ(writing->Receive(12), "+OK\r\n$1\r\n1\r\n");
}

}  // namespace
}  // namespace varve
