// max-disk-bytes of server_main, as it shows from outside: on the directory, and on its replies.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::ServerProcess;
using testing::TempDir;

constexpr uint64_t kServersDiskLimit = uint64_t{64} << 20;
constexpr int kWritesTogether = 50;

class DiskLimitProcessTest : public ::testing::Test {
 protected:
  void Start(uint64_t limit = kServersDiskLimit) {
    server_ = std::make_unique<ServerProcess>(
        VARVE_SERVER_MAIN, dir_.File("data"),
        std::vector<std::string>{"--sync=no", "--memory-limit=128MiB",
                                 "--max-disk-bytes=" + std::to_string(limit)});
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", server_->port(), std::chrono::seconds(60));
    ASSERT_TRUE(client.ok()) << client.status() << server_->log();
    client_ = *std::move(client);
  }
  void End(int signal) {
    client_.reset();
    server_->process().Kill(signal);
    server_->process().Wait();
    server_.reset();
  }
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  static std::string Name(int key) { return "key:" + std::to_string(1'000'000 + key); }
  // Writes values that nothing compresses until a write is refused. Returns how many were not.
  int WriteUntilRefused(int from, std::string* refusal) {
    for (int key = from;; key += kWritesTogether) {
      std::vector<std::string> request = {"MSET"};
      for (int i = 0; i < kWritesTogether; ++i) {
        std::string value(1000, '\0');
        for (char& c : value) c = static_cast<char>(random_());
        request.insert(request.end(), {Name(key + i), std::move(value)});
      }
      *refusal = Do(request);
      if (*refusal != "OK" || key > 1'000'000) return key - from;
      if (key % 1000 == 0) EXPECT_LE(BytesOnDisk(), kServersDiskLimit);
    }
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    std::error_code gone;
    for (auto entry = std::filesystem::recursive_directory_iterator(dir_.File("data"), gone);
         entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone)) {
      struct stat found = {};
      if (::lstat(entry->path().c_str(), &found) == 0 && S_ISREG(found.st_mode))
        bytes += static_cast<uint64_t>(found.st_size);
      if (gone) break;
    }
    return bytes;
  }

  TempDir dir_;
  std::mt19937_64 random_{1};
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(DiskLimitProcessTest, WritesEndAtTheLimitAndGoOnOnceThereIsRoom) {
  Start();
  std::string refusal;
  const int written = WriteUntilRefused(0, &refusal);
  EXPECT_EQ(refusal.substr(0, 9), "!MISCONF ") << refusal;
  EXPECT_NE(refusal.find("max-disk-bytes"), std::string::npos) << refusal;
  EXPECT_GT(written, 10'000);
  EXPECT_EQ(Do({"STRLEN", Name(0)}), "1000") << "reads go on";
  EXPECT_EQ(Do({"DBSIZE"}), std::to_string(written));

  // Full as it is, it comes back from a kill and from a stop, and is still full.
  for (const int signal : {SIGKILL, SIGTERM}) {
    End(signal);
    Start();
    EXPECT_LE(BytesOnDisk(), kServersDiskLimit);
    EXPECT_EQ(Do({"DBSIZE"}), std::to_string(written));
    EXPECT_EQ(Do({"STRLEN", Name(written - 1)}), "1000");
  }

  // Deletes are taken, and what they free is there once it is merged away.
  ASSERT_EQ(Do({"DELRANGE", "[" + Name(0), "(" + Name(written / 2)}), "OK");
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  std::string again;
  ASSERT_TRUE(Eventually([&] { return (again = Do({"SET", "again", "x"})) == "OK"; })) << again;
  // The files that were merged away go one after the other.
  int more = 0;
  EXPECT_TRUE(Eventually([&] {
    more += WriteUntilRefused(written + more, &refusal);
    return more > written / 4;
  })) << more
      << " of " << written << ": " << refusal;
  EXPECT_LE(BytesOnDisk(), kServersDiskLimit);
  End(SIGKILL);
  Start();
  EXPECT_EQ(Do({"DBSIZE"}), std::to_string(written - written / 2 + more + 1));
  EXPECT_EQ(Do({"STRLEN", Name(written + more - 1)}), "1000");
  EXPECT_EQ(Do({"GET", "again"}), "x");
}

// The reserve is half of so low a bound.
TEST_F(DiskLimitProcessTest, AServerStartsWithABoundOfWhichOnlyTheReserveIsLeft) {
  Start();
  std::string refusal;
  const int written = WriteUntilRefused(0, &refusal);
  ASSERT_GT(written, 10'000) << refusal;
  End(SIGTERM);
  const uint64_t lowered = BytesOnDisk() + BytesOnDisk() / 2;
  for (const int signal : {SIGKILL, SIGTERM}) {
    ASSERT_NO_FATAL_FAILURE(Start(lowered));
    EXPECT_EQ(Do({"DBSIZE"}), std::to_string(written));
    EXPECT_EQ(Do({"STRLEN", Name(written - 1)}), "1000") << "reads go on";
    refusal = Do({"SET", "more", "x"});
    EXPECT_EQ(refusal.substr(0, 9), "!MISCONF ") << refusal;
    EXPECT_NE(refusal.find("max-disk-bytes"), std::string::npos) << refusal;
    End(signal);
  }
  ASSERT_NO_FATAL_FAILURE(Start(lowered));
  EXPECT_EQ(Do({"DEL", Name(0)}), "1");
  ASSERT_EQ(Do({"FLUSHALL"}), "OK");
  EXPECT_TRUE(Eventually([&] {
    refusal = Do({"COMPACT"});
    if (refusal == "OK") refusal = Do({"SET", "again", "x"});
    return refusal == "OK";
  })) << refusal;
  EXPECT_LE(BytesOnDisk(), lowered);
}

TEST_F(DiskLimitProcessTest, AServerSaysThatTheBoundIsBelowWhatIsThere) {
  Start();
  std::string value(1'000'000, '\0');
  for (int key = 0; key < 16; ++key) {
    for (char& c : value) c = static_cast<char>(random_());
    ASSERT_EQ(Do({"SET", Name(key), value}), "OK");
  }
  End(SIGTERM);
  ServerProcess server(VARVE_SERVER_MAIN, dir_.File("data"),
                       {"--memory-limit=128MiB", "--max-disk-bytes=8MiB"});
  EXPECT_EQ(server.port(), 0);
  EXPECT_EQ(server.process().Wait(), 1);
  EXPECT_NE(server.log().find("max-disk-bytes allows, which is too little to open the store: "
                              "raise the limit"),
            std::string::npos)
      << server.log();
}

}  // namespace
}  // namespace varve
