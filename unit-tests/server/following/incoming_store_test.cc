// A copy takes the place of a store, whatever fails on the way.
#include "server/following/incoming_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/checkpoint.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::TempDir;

class IncomingStoreTest : public ::testing::Test {
 protected:
  void MakeStore(const std::string& name, const std::string& value) {
    auto store = StorageEngine::Open(directory_.File(name), {});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Put("key", value).ok());
    if (name != "copied") return;
    ASSERT_TRUE(CreateCheckpoint(store->get(), directory_.File("checkpoint")).ok());
  }
  // Gathers the files of the checkpoint.
  absl::Status Gather(FileSystem* files, bool seals) {
    IncomingStore incoming(files, directory_.File("store"));
    if (absl::Status begun = incoming.Begin(); !begun.ok()) return begun;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.File("checkpoint"))) {
      const std::string name = entry.path().filename().string();
      const std::unique_ptr<File> file =
          PosixFileSystem()->OpenForRead(entry.path().string()).value();
      std::string bytes(file->Size().value(), '\0');
      EXPECT_EQ(file->Read(0, bytes.size(), bytes.data()).value(), bytes.size());
      absl::Status status = incoming.BeginFile(name);
      if (status.ok()) status = incoming.Append(bytes);
      if (status.ok()) status = incoming.EndFile();
      if (!status.ok()) return status;
    }
    return seals ? incoming.Seal({.retains = true, .lineage = {.current = 1}}) : absl::OkStatus();
  }
  std::string ValueInStore() {
    auto store = StorageEngine::Open(directory_.File("store"), {.create_if_missing = false});
    if (!store.ok()) return store.status().ToString();
    std::string value;
    const auto read = (*store)->Get({}, "key", &value);
    return read.ok() && read->found ? value : "nothing";
  }
  bool HasIncoming() { return std::filesystem::exists(directory_.File("store/incoming")); }

  TempDir directory_;
};

TEST_F(IncomingStoreTest, AnIncompleteCopyGoesAndTheStoreStays) {
  MakeStore("store", "old");
  MakeStore("copied", "new");
  ASSERT_TRUE(Gather(PosixFileSystem(), /*seals=*/false).ok());
  EXPECT_FALSE(InstallIncomingStore(PosixFileSystem(), directory_.File("store")).value());
  EXPECT_FALSE(HasIncoming());
  EXPECT_EQ(ValueInStore(), "old");
}

TEST_F(IncomingStoreTest, ACompleteCopyIsInstalledAtWhateverStepThatIsInterrupted) {
  MakeStore("copied", "new");
  bool interrupted = true;
  for (int step = 0; interrupted; ++step) {
    std::filesystem::remove_all(directory_.File("store"));
    MakeStore("store", "old");
    ASSERT_TRUE(Gather(PosixFileSystem(), /*seals=*/true).ok());
    FaultFileSystem faulty;
    faulty.FailBehind(static_cast<uint64_t>(step));
    interrupted = !InstallIncomingStore(&faulty, directory_.File("store")).ok();
    if (interrupted) {
      ASSERT_TRUE(InstallIncomingStore(PosixFileSystem(), directory_.File("store")).ok())
          << "step " << step;
    }
    EXPECT_FALSE(HasIncoming()) << "step " << step;
    EXPECT_EQ(ValueInStore(), "new") << "step " << step;
    EXPECT_TRUE(ReadReplicationFile(PosixFileSystem(), directory_.File("store"))->retains);
    ASSERT_LT(step, 200);
  }
}

TEST_F(IncomingStoreTest, ACopyThatCantBeGatheredLeavesTheStore) {
  MakeStore("store", "old");
  MakeStore("copied", "new");
  bool failed = true;
  for (int step = 0; failed; ++step) {
    FaultFileSystem faulty;
    faulty.FailBehind(static_cast<uint64_t>(step));
    failed = !Gather(&faulty, /*seals=*/true).ok();
    const absl::StatusOr<bool> installed =
        InstallIncomingStore(PosixFileSystem(), directory_.File("store"));
    ASSERT_TRUE(installed.ok()) << installed.status();
    EXPECT_EQ(ValueInStore(), *installed ? "new" : "old") << "step " << step;
    if (*installed) break;
    ASSERT_LT(step, 200);
  }
}

}  // namespace
}  // namespace varve
