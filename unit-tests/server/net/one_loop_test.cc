// A server with one loop and many clients: the loop puts on disk what it wrote.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

class OneLoopTest : public ::testing::Test {
 protected:
  static EngineOptions Engine(FaultFileSystem* files) {
    EngineOptions engine = TestServer::SmallEngine();
    engine.file_system = files;
    return engine;
  }
  FaultFileSystem files_;
  TestServer server_{ServerOptions{.execution = Execution::kInline, .io_threads = 1},
                     Engine(&files_)};
};

TEST_F(OneLoopTest, WhatItWroteItSyncsItself) {
  std::atomic<int> syncs_here{0};
  const uint64_t token =
      server_.store().AddDurabilityListener([&] { syncs_here += testing::IsLoopsThread(); });
  const std::unique_ptr<Client> one = server_.Connect(), other = server_.Connect();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(one->Put("a", "1").ok());
    EXPECT_TRUE(other->Put("b", "2").ok());
  }
  EXPECT_GT(syncs_here, 0);
  server_.store().RemoveDurabilityListener(token);
}

// Were writes kept until there is nothing else to do, this one would wait for ever.
TEST_F(OneLoopTest, WritesGetToTheDiskWhileOthersRead) {
  std::atomic<bool> done{false};
  std::atomic<int> read{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      RawConnection reader(server_.port());
      std::string pipeline, replies;
      for (int j = 0; j < 2000; ++j) {
        pipeline += Resp({"GET", "missing"});
        replies += "$-1\r\n";
      }
      bool answered = reader.Send(pipeline);
      while (!done && answered) {
        answered = reader.Send(pipeline) && reader.Receive(replies.size()) == replies;
        if (answered) ++read;
      }
      EXPECT_TRUE(answered);
      done = true;
    });
  }
  const std::unique_ptr<Client> writer = server_.Connect();
  bool written = true;
  for (int i = 0; (i < 200 || read < 100) && written && !done; ++i) {
    written = writer->Put("k", std::to_string(i)).ok();
  }
  EXPECT_TRUE(written);
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(OneLoopTest, AllAreToldOfAFailedSync) {
  constexpr int kWriters = 8;
  server_.ExpectUncleanClose();
  std::atomic<int> refused{0}, written{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int j = 0;; ++j) {
        const absl::Status status = client->Put(std::to_string(i), std::to_string(j));
        if (!status.ok()) {
          EXPECT_TRUE(std::string(status.message()).starts_with("MISCONF")) << status;
          EXPECT_TRUE(client->Get("0").ok());
          ++refused;
          return;
        }
        if (++written == 500) {
          files_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"),
                      FaultFileSystem::kUnlimited, ".log");
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(refused, kWriters);
}

}  // namespace
}  // namespace varve
