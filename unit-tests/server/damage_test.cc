// A disk that damages data under server_main: what clients and the log are told, and what
// client_main makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;
using testing::TempDir;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() { Start(); }

  void Start(const std::vector<std::string>& flags = {}) {
    server_ = std::make_unique<ServerProcess>(VARVE_SERVER_MAIN, directory_, flags);
    if (server_->port() == 0) return;
    auto client = Client::Connect("127.0.0.1", server_->port(), std::chrono::seconds(60));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  // As a clean stop, or as a crash.
  void End(int signal) {
    client_.reset();
    server_->process().Kill(signal);
    server_->process().Wait();
  }
  // Flips a bit of the byte that `text` begins with, in the one file with that suffix that holds
  // it; returns the file.
  std::string Damage(const std::string& text, const std::string& suffix) {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string path = entry.path().string();
      std::string bytes = ReadFile(path);
      const size_t at = bytes.find(text);
      if (!path.ends_with(suffix) || at == std::string::npos) continue;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      std::ofstream(path, std::ios::binary) << bytes;
      return path;
    }
    ADD_FAILURE() << text << " is in no file";
    return "";
  }
  // Exit code of client_main; what it printed is in output_.
  int Run(std::vector<std::string> arguments) {
    const std::string file = dir_.File("out");
    const int code = Process(VARVE_CLIENT_MAIN, arguments, file).Wait();
    output_ = ReadFile(file);
    return code;
  }

  TempDir dir_;
  const std::string directory_ = dir_.File("data");
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  std::string output_;
};

std::string Key(int i) { return "key" + std::to_string(1000 + i); }

// Damage that a reader met was told to that reader alone; the server's log did not name it.
TEST_F(DamageTest, OfASegmentIsNamedToTheClientAndInTheLogAndRepaired) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(client_->Put(Key(i), "value of " + Key(i)).ok());
  ASSERT_TRUE(client_->Call({"COMPACT"}).ok());
  EXPECT_EQ(Run({"verify", directory_}), 2);
  EXPECT_THAT(output_, HasSubstr("held by another process")) << "a server has it";
  End(SIGTERM);
  EXPECT_EQ(Run({"verify", directory_}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("all is well"));

  const std::string path = Damage("value of " + Key(100), ".seg");
  Start();
  ASSERT_NE(client_, nullptr) << server_->log();
  ASSERT_TRUE(client_->Send({"GET", Key(100)}).ok());
  const absl::StatusOr<Reply> reply = client_->Receive();
  ASSERT_TRUE(reply.ok() && reply->is_error());
  EXPECT_TRUE(reply->text.starts_with("DATALOSS ")) << reply->text;
  EXPECT_THAT(reply->text, HasSubstr(path + " is damaged at offset "));
  EXPECT_THAT(server_->log(), HasSubstr(path + " is damaged at offset "));
  for (int i = 0; i < 200; ++i) {
    if (i == 100) continue;
    const auto value = client_->Get(Key(i));
    ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
    ASSERT_EQ(**value, "value of " + Key(i));
  }
  End(SIGTERM);

  const std::string name = path.substr(path.find_last_of('/') + 1);
  EXPECT_EQ(Run({"verify", directory_}), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr(name), HasSubstr("199 of the segment's 200 records"),
                             HasSubstr("1 damaged place")));
  EXPECT_EQ(Run({"--json", "verify", directory_}), 2);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("{\"kind\":\"damage\",\"file\":\"" + name + "\",\"offset\":"),
                    HasSubstr("\"damaged_places\":1,")));
  EXPECT_EQ(Run({"--table", "repair", directory_}), 0);
  EXPECT_THAT(output_,
              AllOf(HasSubstr("between \"key1099\" and \"key1101\""), HasSubstr("199 records")));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/damaged/" + name));
  EXPECT_EQ(Run({"verify", directory_}), 0) << output_;
  EXPECT_EQ(Run({"repair", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("nothing was changed"));
  Start();
  ASSERT_NE(client_, nullptr) << server_->log();
  EXPECT_FALSE(client_->Get(Key(100))->has_value());
  EXPECT_EQ(client_->Count("-", "+").value_or(-1), 199);
}

// The server reads out of mappings, where bytes that are gone raise SIGBUS.
TEST_F(DamageTest, BytesThatAreGoneUnderAMappingAreAnErrorReply) {
  constexpr int kKeys = 400, kReadOften = 100;
  const auto value_of = [](int i) { return std::string(3500, static_cast<char>('a' + i % 26)); };
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(client_->Put(Key(i), value_of(i)).ok());
  ASSERT_TRUE(client_->Call({"COMPACT"}).ok());
  End(SIGTERM);
  Start({"--block-cache-size=0", "--mapped-read-budget=64MiB", "--io-threads=1",
         "--execution=inline"});
  ASSERT_NE(client_, nullptr) << server_->log();
  std::vector<std::string> keys;
  for (int i = 0; i < kReadOften; ++i) keys.push_back(Key(i));
  std::vector<std::string_view> read_often{"MGET"};
  read_often.insert(read_often.end(), keys.begin(), keys.end());
  std::filesystem::path path;  // of the file that has the values
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() != ".val") continue;
    ASSERT_TRUE(path.empty()) << "values are in one file";
    path = entry.path();
  }
  // A thread reads by calls for a while after a page fault that went to the disk.
  const std::string maps = "/proc/" + std::to_string(server_->process().id()) + "/maps";
  ASSERT_TRUE(Eventually([&] {
    EXPECT_TRUE(client_->Call(read_often).ok());
    return ReadFile(maps).find(path.string()) != std::string::npos;
  }));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  for (const int lost : {kKeys * 6 / 10, kKeys * 7 / 10, kKeys * 8 / 10}) {
    ASSERT_TRUE(client_->Send({"GET", Key(lost)}).ok());
    const absl::StatusOr<Reply> reply = client_->Receive();
    ASSERT_TRUE(reply.ok() && reply->is_error()) << reply.status() << server_->log();
    EXPECT_TRUE(reply->text.starts_with("DATALOSS " + path.string())) << reply->text;
  }
  const auto kept = client_->Get(Key(kKeys / 4));
  ASSERT_TRUE(kept.ok() && kept->has_value()) << kept.status();
  EXPECT_EQ(**kept, value_of(kKeys / 4));
}

TEST_F(DamageTest, OfTheLogOrTheManifestKeepsTheServerFromStartingUntilItIsRepaired) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client_->Put(Key(i), "value of " + Key(i)).ok());
  End(SIGKILL);
  const std::string path = Damage("value of " + Key(10), ".log");
  Start();
  EXPECT_EQ(server_->port(), 0);
  EXPECT_THAT(server_->log(), AllOf(HasSubstr(path + " is damaged at offset "),
                                    HasSubstr("`client_main repair " + directory_ + "`")));
  EXPECT_EQ(Run({"verify", directory_}), 2);
  EXPECT_THAT(output_, HasSubstr("operations from 11 to 11 can't be read"));
  EXPECT_EQ(Run({"repair", directory_}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("operations 11 to 11 are lost"));
  Start();
  ASSERT_NE(client_, nullptr) << server_->log();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client_->Get(Key(i))->has_value(), i != 10) << i;
  End(SIGTERM);

  const std::string manifest = Damage("VARVEMAN", "/MANIFEST");
  Start();
  EXPECT_EQ(server_->port(), 0);
  EXPECT_THAT(server_->log(),
              AllOf(HasSubstr(manifest + " is damaged at offset 0"), HasSubstr("take its copy")));
  EXPECT_EQ(Run({"repair", directory_}), 0) << output_;
  Start();
  ASSERT_NE(client_, nullptr) << server_->log();
  EXPECT_EQ(client_->Count("-", "+").value_or(-1), 19);
}

TEST_F(DamageTest, TheTornEndOfALogIsNoDamage) {
  ASSERT_TRUE(client_->Put("kept", "1").ok());
  ASSERT_TRUE(client_->Put("last", "value of the last").ok());
  End(SIGKILL);
  Damage("value of the last", ".log");
  EXPECT_EQ(Run({"verify", directory_}), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("tear"), Not(HasSubstr("damaged"))));
  EXPECT_EQ(Run({"repair", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("nothing was changed"));
  Start();
  ASSERT_NE(client_, nullptr) << server_->log();
  EXPECT_TRUE(client_->Get("kept")->has_value());
}

}  // namespace
}  // namespace varve
