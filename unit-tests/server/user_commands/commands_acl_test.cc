// Users and their rights through the port: ACL, AUTH and what is refused to whom.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr char kNoKey[] =
    "!NOPERM this user has no permissions to access one of the keys used as arguments";

std::string NoCommand(const std::string& name) {
  return "!NOPERM this user has no permissions to run the '" + name + "' command";
}

class AclTest : public testing::CommandTest {
 protected:
  // Makes the user, who needs no password, and returns a connection that is logged in as it.
  std::unique_ptr<Client> LogIn(const std::string& name, const std::vector<std::string>& rules) {
    std::vector<std::string> request = {"ACL", "SETUSER", name, "on", "nopass"};
    request.insert(request.end(), rules.begin(), rules.end());
    EXPECT_EQ(Do(request), "OK");
    std::unique_ptr<Client> client = server_.Connect();
    EXPECT_EQ(Ask(*client, {"AUTH", name, "any"}), "OK");
    return client;
  }
  std::string Line(const std::string& name) {
    const std::string list = Do({"ACL", "LIST"});
    const size_t begin = list.find("user " + name + " ");
    return list.substr(begin, list.find_first_of(")", begin) - begin);
  }
};

TEST_F(AclTest, TheDefaultUserMayDoAll) {
  EXPECT_EQ(Do({"ACL", "WHOAMI"}), "default");
  EXPECT_EQ(Do({"ACL", "LIST"}), "(user default on nopass ~* &* +@all)");
  EXPECT_EQ(Do({"ACL", "USERS"}), "(default)");
  EXPECT_EQ(Do({"ACL", "GETUSER", "nobody"}), "nil");
  EXPECT_EQ(Do({"ACL", "DELUSER", "default"}), "!ERR The 'default' user cannot be removed");
  EXPECT_EQ(Do({"ACL", "DELUSER", "nobody"}), "0");
  EXPECT_EQ(Do({"ACL", "SETUSER", "a b"}),
            "!ERR Usernames can't contain spaces or null characters");
  EXPECT_EQ(Do({"ACL", "SETUSER", "a", "+nosuch"}),
            "!ERR Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in "
            "ACL");
  EXPECT_EQ(Do({"ACL", "NOSUCH"}), "!ERR unknown subcommand 'NOSUCH'. Try ACL HELP.");
}

TEST_F(AclTest, AUserMayDoWhatItsRulesAllow) {
  const std::unique_ptr<Client> alice =
      LogIn("alice", {"~app:*", "%R~shared:*", "+@read", "+set", "+acl|whoami"});
  EXPECT_EQ(Ask(*alice, {"ACL", "WHOAMI"}), "alice");
  EXPECT_EQ(Ask(*alice, {"SET", "app:1", "x"}), "OK");
  EXPECT_EQ(Ask(*alice, {"GET", "app:1"}), "x");
  EXPECT_EQ(Ask(*alice, {"GET", "shared:1"}), "nil");
  EXPECT_EQ(Ask(*alice, {"SET", "shared:1", "x"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"GET", "other"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"MGET", "app:1", "other"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"DEL", "app:1"}), NoCommand("del"));
  EXPECT_EQ(Ask(*alice, {"CONFIG", "GET", "*"}), NoCommand("config|get"));
  EXPECT_EQ(Ask(*alice, {"ACL", "LIST"}), NoCommand("acl|list"));
  EXPECT_EQ(Ask(*alice, {"GET"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Ask(*alice, {"DBSIZE"}),
            "!NOPERM this user has no permissions to access all keys, which the command needs");
  EXPECT_EQ(Do({"GET", "other"}), "nil");
}

TEST_F(AclTest, RequestsOfOnePipelineAreCheckedOneByOne) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", ">pw", "~a*", "+get", "+set"}), "OK");
  RawConnection raw(server_.port());
  std::string requests = Resp({"SET", "b", "1"}) + Resp({"AUTH", "alice", "pw"});
  for (const char* key : {"a1", "b", "a2"})
    requests += Resp({"SET", key, "2"}) + Resp({"GET", key});
  ASSERT_TRUE(raw.Send(requests));
  raw.FinishSending();
  const std::string denied = "-" + std::string(kNoKey).substr(1) + "\r\n";
  EXPECT_EQ(raw.ReceiveAll(),
            "+OK\r\n+OK\r\n+OK\r\n$1\r\n2\r\n" + denied + denied + "+OK\r\n$1\r\n2\r\n");
  EXPECT_EQ(Do({"GET", "b"}), "1");
}

TEST_F(AclTest, PasswordsAndSwitchedOffUsers) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", ">pw", "+@all", "~*", "&*"}), "OK");
  const std::string wrong = "!WRONGPASS invalid username-password pair or user is disabled.";
  const std::unique_ptr<Client> client = server_.Connect();
  EXPECT_EQ(Ask(*client, {"AUTH", "alice", "pw"}), wrong);
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on"}), "OK");
  EXPECT_EQ(Ask(*client, {"AUTH", "alice", "wrong"}), wrong);
  EXPECT_EQ(Ask(*client, {"AUTH", "nobody", "pw"}), wrong);
  EXPECT_EQ(Ask(*client, {"ACL", "WHOAMI"}), "default");
  EXPECT_EQ(Ask(*client, {"HELLO", "2", "AUTH", "alice", "pw"}).substr(0, 6), "(serve");
  EXPECT_EQ(Ask(*client, {"ACL", "WHOAMI"}), "alice");
  // Who is logged in stays when the user is switched off.
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "off"}), "OK");
  EXPECT_EQ(Ask(*client, {"PING"}), "PONG");
  EXPECT_EQ(Ask(*client, {"RESET"}), "RESET");
  EXPECT_EQ(Ask(*client, {"ACL", "WHOAMI"}), "default");
  EXPECT_EQ(Ask(*client, {"AUTH", "alice", "pw"}), wrong);
}

TEST_F(AclTest, TheServersPasswordIsThatOfTheDefaultUser) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"+@all", "~*", "&*"});
  ASSERT_EQ(Do({"CONFIG", "SET", "requirepass", "secret"}), "OK");
  EXPECT_EQ(Line("default"),
            "user default on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~* "
            "&* +@all");
  std::unique_ptr<Client> later = server_.Connect();
  EXPECT_EQ(Ask(*later, {"PING"}), "!NOAUTH Authentication required.");
  EXPECT_EQ(Ask(*later, {"AUTH", "alice", "any"}), "OK");
  EXPECT_EQ(Ask(*later, {"PING"}), "PONG");
  EXPECT_EQ(Ask(*later, {"RESET"}), "RESET");
  EXPECT_EQ(Ask(*later, {"PING"}), "!NOAUTH Authentication required.");
  EXPECT_EQ(Ask(*later, {"AUTH", "secret"}), "OK");
  ASSERT_EQ(Do({"CONFIG", "SET", "requirepass", ""}), "OK");
  EXPECT_EQ(Line("default"), "user default on nopass ~* &* +@all");
}

TEST_F(AclTest, ChangesHoldForOpenConnectionsFromTheNextRequestOn) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*", "+@all", "&*"});
  EXPECT_EQ(Ask(*alice, {"SET", "k", "1"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-set"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "k", "2"}), NoCommand("set"));
  EXPECT_EQ(Ask(*alice, {"GET", "k"}), "1");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~other"}), "OK");
  EXPECT_EQ(Ask(*alice, {"GET", "k"}), kNoKey);
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "+@all", "~*"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "k", "3"}), "OK");
  // Who takes rights from itself loses them at once, also within a pipeline.
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(Resp({"AUTH", "alice", "x"}) + Resp({"ACL", "SETUSER", "alice", "-get"}) +
                       Resp({"GET", "k"})));
  raw.FinishSending();
  EXPECT_EQ(raw.ReceiveAll(), "+OK\r\n+OK\r\n-" + NoCommand("get").substr(1) + "\r\n");
}

TEST_F(AclTest, ConnectionsOfRemovedUsersAreClosed) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*", "+@all"});
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(Resp({"AUTH", "alice", "x"})));
  ASSERT_EQ(raw.Receive(5), "+OK\r\n");
  EXPECT_EQ(Do({"ACL", "DELUSER", "alice", "nobody"}), "1");
  EXPECT_EQ(raw.ReceiveAll(), "");
  EXPECT_TRUE(raw.closed());
  EXPECT_TRUE(Ask(*alice, {"PING"}).starts_with("lost:"));
  EXPECT_EQ(Do({"PING"}), "PONG");
  const std::unique_ptr<Client> bob = LogIn("bob", {"+@all"});
  EXPECT_EQ(Ask(*bob, {"ACL", "DELUSER", "bob"}), "1");
  EXPECT_TRUE(Ask(*bob, {"PING"}).starts_with("lost:"));
}

TEST_F(AclTest, QueuedRequestsAreCheckedTwice) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"~a*", "+@all", "&*"});
  EXPECT_EQ(Ask(*alice, {"MULTI"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "a", "1"}), "QUEUED");
  EXPECT_EQ(Ask(*alice, {"SET", "b", "1"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Ask(*alice, {"MULTI"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "a", "2"}), "QUEUED");
  EXPECT_EQ(Ask(*alice, {"GET", "a"}), "QUEUED");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-set"}), "OK");
  EXPECT_EQ(Ask(*alice, {"EXEC"}),
            "(!NOPERM ACLs rules changed between the moment the transaction was accumulated and "
            "the EXEC call. This command is no longer allowed for the following reason: no "
            "permission to execute the command or subcommand nil)");
}

TEST_F(AclTest, ChannelsAreCheckedAndListenersOfForbiddenOnesAreClosed) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"&news:*", "+@all"});
  EXPECT_EQ(Ask(*alice, {"PUBLISH", "news:1", "x"}), "0");
  const std::string denied =
      "!NOPERM this user has no permissions to access one of the channels used as arguments";
  EXPECT_EQ(Ask(*alice, {"PUBLISH", "b", "x"}), denied);
  EXPECT_EQ(Ask(*alice, {"PSUBSCRIBE", "news:1*"}), denied);
  RawConnection listener(server_.port());
  ASSERT_TRUE(listener.Send(Resp({"AUTH", "alice", "x"}) + Resp({"SUBSCRIBE", "news:1"})));
  const std::string greeting = "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$6\r\nnews:1\r\n:1\r\n";
  ASSERT_EQ(listener.Receive(greeting.size()), greeting);
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "&more"}), "OK");
  EXPECT_EQ(Do({"PUBLISH", "news:1", "x"}), "1");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetchannels", "&more"}), "OK");
  EXPECT_TRUE(listener.ReceiveAll().ends_with("$1\r\nx\r\n"));
  EXPECT_TRUE(listener.closed());
  EXPECT_EQ(Ask(*alice, {"PING"}), "PONG");
}

TEST_F(AclTest, WhoMayNotMonitorAnyMoreIsClosed) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*", "+@all"});
  RawConnection monitor(server_.port());
  ASSERT_TRUE(monitor.Send(Resp({"AUTH", "alice", "x"}) + Resp({"MONITOR"})));
  ASSERT_EQ(monitor.Receive(10), "+OK\r\n+OK\r\n");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-get"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "shown"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-monitor"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "hidden"}), "OK");
  const std::string seen = monitor.ReceiveAll();
  EXPECT_NE(seen.find("shown"), std::string::npos);
  EXPECT_TRUE(monitor.closed());
  EXPECT_EQ(Ask(*alice, {"PING"}), "PONG");
}

TEST_F(AclTest, AScanTellsNothingOfKeysThatTheUserMayNotRead) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(Do({"SET", "k" + std::to_string(i) + ":x", "1"}), "OK");
  ASSERT_EQ(Do({"SET", "z:mine", "1"}), "OK");
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*:mine", "+@all"});
  EXPECT_EQ(Ask(*alice, {"SCAN", "0", "COUNT", "1"}), "(0 (z:mine))")
      << "as if the other keys were not there";
}

TEST_F(AclTest, ACursorOfAnotherUserIsUnknown) {
  for (const char* key : {"a", "b", "c"}) ASSERT_EQ(Do({"SET", key, "1"}), "OK");
  const std::string scanned = Do({"SCAN", "0", "COUNT", "1"});
  const std::string cursor = scanned.substr(1, scanned.find(' ') - 1);
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*", "+@all"});
  EXPECT_TRUE(Ask(*alice, {"SCAN", cursor}).starts_with("!ERR invalid cursor"));
  EXPECT_EQ(Do({"SCAN", cursor}), "(0 (b c))");
}

TEST_F(AclTest, NamespacesThatTheUserMayNotUseAreNotListed) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app:1"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "more"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "secret"}), "OK");
  const std::unique_ptr<Client> alice =
      LogIn("alice", {"~*", "+@all", "resetns", "ns=app:*", "(~* +@all resetns ns=more)"});
  EXPECT_EQ(Ask(*alice, {"NAMESPACE", "LIST"}), "(app:1 more)");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "(app:1 more secret)");
}

TEST_F(AclTest, DatabasesAndNamespaces) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app"}), "OK");
  const std::unique_ptr<Client> alice = LogIn("alice", {"~*", "+@all", "db=1", "ns=app"});
  EXPECT_EQ(Ask(*alice, {"GET", "k"}),
            "!NOPERM this user has no permissions to access the database '0'");
  EXPECT_EQ(Ask(*alice, {"SELECT", "2"}),
            "!NOPERM this user has no permissions to access the database '2'");
  EXPECT_EQ(Ask(*alice, {"SELECT", "1"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "k", "1"}), "OK");
  EXPECT_EQ(Ask(*alice, {"NAMESPACE", "USE", "app"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SET", "k", "2"}), "OK");
  EXPECT_EQ(Ask(*alice, {"NAMESPACE", "USE", "0"}),
            "!NOPERM this user has no permissions to access the database '0'");
  EXPECT_EQ(Ask(*alice, {"NAMESPACE", "CREATE", "other"}),
            "!NOPERM this user has no permissions to access the namespace 'other'");
  // What is queued behind a SELECT works where EXEC has moved to.
  EXPECT_EQ(Ask(*alice, {"MULTI"}), "OK");
  EXPECT_EQ(Ask(*alice, {"SELECT", "1"}), "QUEUED");
  EXPECT_EQ(Ask(*alice, {"GET", "k"}), "QUEUED");
  EXPECT_EQ(Ask(*alice, {"EXEC"}), "(OK 1)");
  EXPECT_EQ(Do({"ACL", "GETUSER", "alice"}),
            "(flags (on nopass) passwords () commands +@all keys ~* channels  places resetdbs "
            "db=1 resetns ns=app selectors ())");
}

TEST_F(AclTest, WhatWasDeniedIsLoggedAndCounted) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"~a", "+get", "+multi", "+publish"});
  EXPECT_EQ(Ask(*alice, {"GET", "b"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"GET", "b"}), kNoKey);
  EXPECT_EQ(Ask(*alice, {"SET", "a", "x"}), NoCommand("set"));
  EXPECT_EQ(Ask(*alice, {"PUBLISH", "c", "x"}).substr(0, 7), "!NOPERM");
  EXPECT_EQ(Ask(*alice, {"AUTH", "bob", "x"}).substr(0, 10), "!WRONGPASS");
  EXPECT_EQ(Ask(*alice, {"MULTI"}), "OK");
  EXPECT_EQ(Ask(*alice, {"GET", "b"}), kNoKey);
  const std::string log = Do({"ACL", "LOG"});
  const char* const kEntries[] = {"count 1 reason key context multi object b username alice",
                                  "count 1 reason auth context toplevel object AUTH username bob",
                                  "count 1 reason channel context toplevel object c",
                                  "count 1 reason command context toplevel object set",
                                  "count 2 reason key context toplevel object b username alice"};
  size_t at = 0;
  for (const char* entry : kEntries) {
    at = log.find(entry, at);
    EXPECT_NE(at, std::string::npos) << entry << " in " << log;
  }
  EXPECT_NE(log.find("client-info id="), std::string::npos);
  EXPECT_NE(log.find(" user=alice "), std::string::npos);
  const std::string info = Do({"INFO", "stats"});
  for (const char* line : {"acl_access_denied_auth:1\r\n", "acl_access_denied_cmd:1\r\n",
                           "acl_access_denied_key:3\r\n", "acl_access_denied_channel:1\r\n"})
    EXPECT_NE(info.find(line), std::string::npos) << line;
  EXPECT_EQ(Do({"ACL", "LOG", "0"}), "()");
  EXPECT_EQ(Do({"ACL", "LOG", "RESET"}), "OK");
  EXPECT_EQ(Do({"ACL", "LOG"}), "()");
}

TEST_F(AclTest, DryRunTellsWithoutDoing) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "~a", "&c", "+get", "+set", "+publish"}), "OK");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "SET", "a", "1"}), "OK");
  EXPECT_EQ(Do({"GET", "a"}), "nil");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "GET", "b"}),
            "This user has no permissions to access the 'b' key");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "DEL", "a"}),
            "This user has no permissions to run the 'del' command");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "PUBLISH", "b", "x"}),
            "This user has no permissions to access the 'b' channel");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "default", "GET", "b"}), "OK");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "bob", "GET", "b"}), "!ERR User 'bob' not found");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "xget", "b"}), "!ERR Command 'xget' not found");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "GET"}),
            "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"ACL", "LOG"}), "()");
}

TEST_F(AclTest, CategoriesAndPasswords) {
  EXPECT_EQ(Do({"ACL", "CAT"}),
            "(keyspace read write set sortedset list hash string bitmap hyperloglog geo stream "
            "pubsub admin fast slow blocking dangerous connection transaction scripting)");
  EXPECT_EQ(Do({"ACL", "CAT", "bitmap"}),
            "(bitcount bitfield bitfield_ro bitop bitpos getbit setbit)");
  EXPECT_EQ(Do({"ACL", "CAT", "nosuch"}), "!ERR Unknown category 'nosuch'");
  const std::string dangerous = Do({"ACL", "CAT", "dangerous"});
  for (const char* name : {" flushall", " config|set", " namespace|drop", " acl|setuser"})
    EXPECT_NE(dangerous.find(name), std::string::npos) << name << " in " << dangerous;
  EXPECT_EQ(Do({"ACL", "GENPASS"}).size(), 64u);
  EXPECT_EQ(Do({"ACL", "GENPASS", "5"}).size(), 2u);
  EXPECT_EQ(Do({"ACL", "GENPASS", "0"}).substr(0, 24), "!ERR ACL GENPASS argumen");
}

TEST_F(AclTest, WithoutAFileThereIsNothingToLoadOrSave) {
  for (const char* what : {"LOAD", "SAVE"}) {
    EXPECT_TRUE(Do({"ACL", what})
                    .starts_with("!ERR This Redis instance is not configured to use an ACL file."));
  }
}

TEST_F(AclTest, NewUsersMayUseAllChannelsWhereTheSettingSaysSo) {
  EXPECT_EQ(Do({"CONFIG", "GET", "acl*"}),
            "(acl-log-file  acl-pubsub-default resetchannels aclfile  acllog-max-len 128)");
  ASSERT_EQ(Do({"CONFIG", "SET", "acl-pubsub-default", "allchannels"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass"}), "OK");
  EXPECT_EQ(Line("alice"), "user alice on nopass &* -@all user default on nopass ~* &* +@all");
  ASSERT_EQ(Do({"CONFIG", "SET", "acl-pubsub-default", "resetchannels", "acllog-max-len", "1"}),
            "OK");
  const std::unique_ptr<Client> bob = LogIn("bob", {});
  (void)Ask(*bob, {"GET", "a"});
  (void)Ask(*bob, {"SET", "a", "b"});
  EXPECT_NE(Do({"ACL", "LOG"}).find("object set"), std::string::npos);
  EXPECT_EQ(Do({"ACL", "LOG"}).find("object get"), std::string::npos);
}

class AclFileServerTest : public ::testing::Test {
 protected:
  AclFileServerTest() { Write("user default on nopass ~* &* +@all\nuser alice on nopass +ping\n"); }

  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string Contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ServerOptions WithFile() const {
    ServerOptions options;
    options.acl_file = path_;
    return options;
  }

  testing::TempDir directory_;
  const std::string path_ = directory_.File("users.acl");
};

TEST_F(AclFileServerTest, UsersSurviveARestartOnceTheyAreSaved) {
  TestServer server(WithFile());
  std::unique_ptr<Client> admin = server.Connect();
  EXPECT_EQ(Ask(*admin, {"ACL", "USERS"}), "(alice default)");
  ASSERT_EQ(Ask(*admin, {"ACL", "SETUSER", "bob", "on", ">pw", "~b*", "+get", "(~c +set)"}), "OK");
  ASSERT_EQ(Ask(*admin, {"ACL", "DELUSER", "alice"}), "1");
  EXPECT_EQ(Ask(*admin, {"ACL", "SAVE"}), "OK");
  const std::string saved = Contents();
  EXPECT_TRUE(saved.starts_with("user bob on #")) << saved;
  admin.reset();
  server.Restart();
  admin = server.Connect();
  EXPECT_EQ(Ask(*admin, {"ACL", "USERS"}), "(bob default)");
  EXPECT_EQ(Ask(*admin, {"AUTH", "bob", "pw"}), "OK");
  EXPECT_EQ(Ask(*admin, {"GET", "b"}), "nil");
  EXPECT_EQ(Ask(*admin, {"GET", "a"}), kNoKey);
}

TEST_F(AclFileServerTest, AWrongLineChangesNothingAndIsNamed) {
  TestServer server(WithFile());
  const std::unique_ptr<Client> admin = server.Connect(), alice = server.Connect();
  ASSERT_EQ(Ask(*alice, {"AUTH", "alice", "x"}), "OK");
  Write("user bob on\nuser alice on +nosuch\n");
  EXPECT_EQ(Ask(*admin, {"ACL", "LOAD"}),
            "!ERR " + path_ +
                ":2: Error in applying operation '+nosuch': Unknown command or category name in "
                "ACL. WARNING: ACL errors detected, no change to the previously active ACL rules "
                "was performed");
  EXPECT_EQ(Ask(*admin, {"ACL", "USERS"}), "(alice default)");
  EXPECT_EQ(Ask(*alice, {"PING"}), "PONG");
  Write("user bob on\nuser alice on nopass +echo\n");
  EXPECT_EQ(Ask(*admin, {"ACL", "LOAD"}), "OK");
  EXPECT_EQ(Ask(*admin, {"ACL", "USERS"}), "(alice bob default)");
  EXPECT_EQ(Ask(*alice, {"PING"}), NoCommand("ping"));
  Write("user bob on\n");
  EXPECT_EQ(Ask(*admin, {"ACL", "LOAD"}), "OK");
  EXPECT_TRUE(Ask(*alice, {"PING"}).starts_with("lost:"));
  EXPECT_EQ(Ask(*admin, {"PING"}), "PONG");
}

TEST_F(AclFileServerTest, WhereThereIsNoFileToReadTheUsersStayAsTheyWere) {
  TestServer server(WithFile());
  const std::unique_ptr<Client> admin = server.Connect(), alice = server.Connect();
  ASSERT_EQ(Ask(*alice, {"AUTH", "alice", "x"}), "OK");
  const auto load = [&] {
    const std::string reply = Ask(*admin, {"ACL", "LOAD"});
    EXPECT_TRUE(reply.starts_with("!ERR " + path_ + ": ")) << reply;
    EXPECT_EQ(Ask(*admin, {"ACL", "USERS"}), "(alice default)");
    EXPECT_EQ(Ask(*alice, {"PING"}), "PONG");
    return reply;
  };
  std::filesystem::remove(path_);
  EXPECT_NE(load().find("there is no such file"), std::string::npos);
  std::filesystem::create_directory(path_);
  EXPECT_NE(load().find("it is no file"), std::string::npos);
  EXPECT_TRUE(Ask(*admin, {"ACL", "SAVE"}).starts_with("!ERR There was an error")) << "a directory";
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("users.acl", path_);  // to itself: nobody can read it
  (void)load();
}

TEST_F(AclFileServerTest, AServerDoesNotStartWithAWrongFile) {
  const auto start = [&] {
    testing::TempDir data;
    auto store = StorageEngine::Open(data.File("data"), TestServer::SmallEngine());
    EXPECT_TRUE(store.ok());
    ServerConfig config;
    config.server = WithFile();
    config.server.port = 0;
    const absl::Status status = Server::Start(store->get(), config).status();
    EXPECT_TRUE((*store)->Close().ok());
    return status.ToString();
  };
  Write("user bob on\nnonsense\n");
  EXPECT_NE(start().find(path_ + ":2: should start with user keyword"), std::string::npos);
  std::filesystem::remove(path_);
  EXPECT_NE(start().find("there is no such file"), std::string::npos);
  std::filesystem::create_directory(path_);
  EXPECT_NE(start().find("it is no file"), std::string::npos);
}

TEST_F(AclTest, ConnectionsAreListedAndClosedByUser) {
  const std::unique_ptr<Client> alice = LogIn("alice", {"+@all"});
  EXPECT_NE(Ask(*alice, {"CLIENT", "INFO"}).find(" user=alice "), std::string::npos);
  EXPECT_EQ(Do({"CLIENT", "KILL", "USER", "alice"}), "1");
  EXPECT_TRUE(Ask(*alice, {"PING"}).starts_with("lost:"));
  EXPECT_EQ(Do({"CLIENT", "KILL", "USER", "nobody"}), "!ERR No such user 'nobody'");
}

}  // namespace
}  // namespace varve
