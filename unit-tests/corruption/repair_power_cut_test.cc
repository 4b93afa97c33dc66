// A repair that loses its process or its power after any of its changes to the disk, and is started
// again: the store that comes out is the one that comes out of a repair which nothing disturbs.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "db/format/file_names.h"
#include "tools/repair/repair.h"
#include "unit-tests/corruption/store_image.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::Content;
using testing::ContentOf;
using testing::DamageStep;
using testing::DiskEvent;
using testing::ImageOptions;
using testing::Killed;
using testing::kStoreDirectory;
using testing::MemoryFileSystem;
using testing::SimulatedDisk;
using testing::SimulatedFileSystem;
using Files = MemoryFileSystem::Files;

const std::string kImageDirectory(kStoreDirectory);
// Of what a power cut leaves, beside those that SimulatedDisk names.
constexpr uint64_t kDrawnChoices = 30;

// All of it on disk.
SimulatedDisk DiskWith(const Files& files) {
  SimulatedDisk disk;
  disk.Apply({.type = DiskEvent::Type::kMakeDirectory, .path = kImageDirectory});
  for (const auto& [path, bytes] : files) {
    const uint64_t inode = disk.next_inode();
    disk.Apply({.type = DiskEvent::Type::kCreate, .path = path});
    disk.Apply({.type = DiskEvent::Type::kWrite,
                .inode = inode,
                .data = std::make_shared<std::string>(bytes)});
  }
  return disk.CutPower(SimulatedDisk::kKeepAll);
}

Files FilesOf(const SimulatedDisk& disk) {
  Files files;
  for (const std::string& directory : {kImageDirectory, kImageDirectory + "/damaged"}) {
    for (const std::string& name : disk.List(directory)) {
      const std::string path = directory + "/" + name;
      if (const auto inode = disk.Find(path)) files[path] = disk.Content(*inode);
    }
  }
  return files;
}

class RepairPowerCutTest : public ::testing::Test {
 protected:
  RepairPowerCutTest() : files_(Killed().files) {}

  Files& files() { return files_; }
  void Flip(const std::string& path, uint64_t offset) {
    files_.at(path)[offset] = static_cast<char>(files_.at(path)[offset] ^ 8);
  }
  // The n-th segment.
  std::string Segment(int index) const {
    for (const auto& [path, bytes] : files_) {
      if (path.ends_with(".seg") && index-- == 0) return path;
    }
    return "";
  }
  void DamageSegmentsAndLog() {
    Flip(Segment(1), 200);
    Flip(Segment(2), 300);
    for (const auto& [path, bytes] : Killed().files) {
      const size_t at = path.ends_with(".log") ? bytes.find("logged 95") : std::string::npos;
      if (at != std::string::npos) return Flip(path, at);
    }
    FAIL() << "no log holds the operation";
  }

  // The changes that a repair of `disk` makes, which must succeed; `*after`: what it leaves.
  static std::vector<DiskEvent> Repair(const SimulatedDisk& disk, SimulatedDisk* after) {
    SimulatedFileSystem file_system(disk);
    const auto report = RepairStore(&file_system, kImageDirectory, {});
    EXPECT_TRUE(report.ok()) << report.status();
    *after = file_system.disk();
    return file_system.trace();
  }

  // Interrupts the repair of files_ everywhere, and starts it again.
  void InterruptEverywhere() {
    const SimulatedDisk first = DiskWith(files_);
    SimulatedDisk whole;
    const std::vector<DiskEvent> trace = Repair(first, &whole);
    expected_ = ContentOf(FilesOf(whole));
    ASSERT_EQ(ContentOf(FilesOf(whole.CutPower(SimulatedDisk::kLoseAll))), expected_)
        << "power cut right behind it";
    SimulatedDisk disk = first;
    for (size_t at = 0; at <= trace.size(); ++at) {
      if (at > 0) disk.Apply(trace[at - 1]);
      SCOPED_TRACE("after " + std::to_string(at) + " of " + std::to_string(trace.size()) +
                   " changes");
      StartAgain(disk, "killed", /*interrupted_again=*/at % DamageStep() == 0);
      for (uint64_t choice = 0; choice < SimulatedDisk::kKeepContents + 1 + kDrawnChoices;
           ++choice) {
        const uint64_t seed = choice <= SimulatedDisk::kKeepContents ? choice : at * 100 + choice;
        StartAgain(disk.CutPower(seed), "power cut, choice " + std::to_string(seed), choice == 0);
        if (HasFailure()) return;
      }
    }
    RecordProperty("states", static_cast<int>(seen_.size()));
    EXPECT_GT(seen_.size(), trace.size());
  }

 private:
  // Repairs what an interrupted one has left, unless it was done before. Nobody opens what is half
  // repaired.
  void StartAgain(const SimulatedDisk& disk, const std::string& what, bool interrupted_again) {
    if (!seen_.insert(disk.Hash()).second) return;
    SCOPED_TRACE(what);
    if (disk.Find(RepairPlanPath(kImageDirectory))) {
      MemoryFileSystem half(FilesOf(disk));
      ASSERT_TRUE(absl::IsFailedPrecondition(
          StorageEngine::Open(kImageDirectory, ImageOptions(&half)).status()));
    }
    SimulatedDisk after;
    const std::vector<DiskEvent> trace = Repair(disk, &after);
    if (HasFailure()) return;
    ASSERT_EQ(ContentOf(FilesOf(after)), expected_);
    if (!interrupted_again) return;
    // Somewhere in this one, too.
    SimulatedDisk second = disk;
    const size_t end = std::mt19937_64(seen_.size())() % (trace.size() + 1);
    for (size_t at = 0; at < end; ++at) second.Apply(trace[at]);
    StartAgain(second.CutPower(seen_.size()),
               "and a power cut after " + std::to_string(end) + " changes", false);
  }

  Files files_;  // damaged
  Content expected_;
  std::unordered_set<uint64_t> seen_;
};

TEST_F(RepairPowerCutTest, OfSegmentsAndLog) {
  DamageSegmentsAndLog();
  InterruptEverywhere();
}

TEST_F(RepairPowerCutTest, WithTheManifestsCopy) {
  DamageSegmentsAndLog();
  Flip(Killed().Path("MANIFEST"), 40);
  InterruptEverywhere();
}

TEST_F(RepairPowerCutTest, WithoutAnyManifest) {
  DamageSegmentsAndLog();
  Flip(Killed().Path("MANIFEST"), 40);
  files().erase(Killed().Path("MANIFEST.copy"));
  InterruptEverywhere();
}

}  // namespace
}  // namespace varve
