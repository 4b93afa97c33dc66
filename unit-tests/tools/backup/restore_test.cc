#include "tools/backup/restore.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "db/version/manifest.h"
#include "tools/verify.h"
#include "unit-tests/tools/backup/backup_fixture.h"
#include "unit-tests/tools/backup/watched_file_system.h"
#include "util/base/hash.h"
#include "varve/key_group.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using ::testing::AnyOf;
using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::FilesBelow;
using testing::FlipBit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Keys;
using testing::ManualClock;
using testing::NameOf;
using testing::ReadBytes;
using testing::Spaces;
using ::testing::UnorderedElementsAre;
using testing::WatchedFileSystem;
using testing::WriteBytes;

class RestoreTest : public BackupTest {
 protected:
  std::string new_path() const { return dir_.File("restored"); }

  absl::StatusOr<RestoreReport> Restore(const std::string& id, const RestoreTarget& target = {},
                                        FileSystem* file_system = PosixFileSystem()) const {
    return RestoreBackup(file_system, PathOf(id), new_path(), {.target = target}, {});
  }
  // Restores, returns what the new store holds, and removes it.
  Spaces Restored(const std::string& id, const RestoreTarget& target = {}) const {
    const auto report = Restore(id, target);
    EXPECT_TRUE(report.ok()) << report.status();
    Spaces spaces = report.ok() ? ContentsAt(new_path()) : Spaces();
    const auto verified = VerifyStore(PosixFileSystem(), new_path(), {});
    EXPECT_TRUE(verified.ok() && verified->damaged_places == 0)
        << (verified.ok() ? verified->findings[0].file + verified->findings[0].what : "");
    std::filesystem::remove_all(new_path());
    return spaces;
  }
  // Names beside the store and the backups.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename().string();
      if (name != "store" && name != "sealed" && name != "dest") names.push_back(name);
    }
    return names;
  }
};

TEST_F(RestoreTest, TheStoreIsAsItWasWithIdsAndVersionsOfItsOwn) {
  OpenStore();
  Fill(0, 300, "value");
  Fill(200, 200, "other");
  const Spaces before = ContentsOf(store_.get());
  const std::string id = BackUp(false);
  const auto report = Restore(id);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ContentsAt(new_path()), before);
  EXPECT_THAT(Leftovers(), ElementsAre("restored"));
  EXPECT_FALSE(std::filesystem::exists(new_path() + "/RESTORE.lock"));
  const auto backup = ReadBackupList(PosixFileSystem(), PathOf(id));
  const auto manifest = ReadManifest(PosixFileSystem(), new_path());
  ASSERT_TRUE(backup.ok() && manifest.ok());
  EXPECT_NE(manifest->store_id, backup->store_id);
  EXPECT_NE(manifest->history_id, backup->history_id);
  EXPECT_EQ(report->version, backup->version);
  EXPECT_EQ(report->instant_ms, backup->instant_ms);
  EXPECT_EQ(report->bytes, backup->new_bytes);
  EXPECT_EQ(report->files, backup->files.size());
  EXPECT_EQ(report->backup_id, id);
  EXPECT_EQ(report->first_new_version, backup->version + kRestoredVersionsAhead + 1);
  EXPECT_GE(manifest->flushed_sequence, backup->version + kRestoredVersionsAhead);
  // The next write has the next version, also after a restart.
  store_.reset();
  auto store = StorageEngine::Open(new_path(), options_);
  ASSERT_TRUE(store.ok());
  WriteBatch batch;
  batch.Put("key", "new");
  const auto committed = (*store)->Write({}, &batch);
  ASSERT_TRUE(committed.ok());
  EXPECT_EQ(committed->sequence, report->first_new_version);
  store->reset();
  Spaces now = before;
  now["0"]["key"] = "new";
  EXPECT_EQ(ContentsAt(new_path()), now);
  const auto verified = VerifyStore(PosixFileSystem(), new_path(), {});
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->damaged_places, 0u);
}

TEST_F(RestoreTest, AnEmptyStoreIsRestored) {
  OpenStore();
  const std::string id = BackUp(false);
  EXPECT_EQ(Restored(id), (Spaces{{"0", {}}}));
}

TEST_F(RestoreTest, AnIncrementIsRestoredAlone) {
  OpenStore();
  Fill(0, 300, "value");
  const std::string first = BackUp(false);
  const Spaces old = ContentsOf(store_.get());
  Fill(100, 20, "more");
  ASSERT_TRUE(store_->DeleteRange("key00200", "key00250").ok());
  const Spaces now = ContentsOf(store_.get());
  const std::string second = BackUp(true);
  EXPECT_EQ(Restored(first), old);
  EXPECT_EQ(Restored(second), now);
  std::filesystem::remove_all(PathOf(first));
  EXPECT_EQ(Restored(second), now);
  // A restored store is backed up and restored again.
  ASSERT_TRUE(Restore(second).ok());
  store_.reset();
  std::filesystem::remove_all(store_path());
  std::filesystem::rename(new_path(), store_path());
  OpenStore();
  Fill(500, 20, "third");
  const Spaces third = ContentsOf(store_.get());
  EXPECT_EQ(Restored(BackUp(true)), third);
}

TEST_F(RestoreTest, FeedsAndRetainedChangesStayBehind) {
  options_.changes.bytes = 1 << 20;
  OpenStore();
  Fill(0, 50, "value");
  FeedPlace feed;
  feed.name = "feed";
  feed.position = kMaxSequence;
  ASSERT_TRUE(store_->CreateFeed(feed).ok());
  const Spaces before = ContentsOf(store_.get());
  const std::string id = BackUp(false);
  options_.changes.bytes = 0;
  EXPECT_EQ(Restored(id), before);
  ASSERT_TRUE(Restore(id).ok());
  const auto manifest = ReadManifest(PosixFileSystem(), new_path());
  ASSERT_TRUE(manifest.ok());
  EXPECT_THAT(manifest->feeds, IsEmpty());
  EXPECT_FALSE(manifest->changes.on);
}

// A store whose upgrade nobody finalized keeps its format.
TEST_F(RestoreTest, AStoreOfAnOlderFormatIsRestored) {
  OpenStore();
  Fill(0, 50, "value");
  const Spaces before = ContentsOf(store_.get());
  BackupOrigin origin = Seal();
  auto manifest = ReadManifest(PosixFileSystem(), sealed_path());
  ASSERT_TRUE(manifest.ok());
  std::filesystem::remove(testing::TimeFileOf(sealed_path()));
  manifest->has_history = manifest->shares_keys = false;
  manifest->history_id = origin.history_id = 0;
  manifest->times = {};
  ASSERT_TRUE(WriteManifest(PosixFileSystem(), sealed_path(), *manifest).ok());
  std::filesystem::remove(sealed_path() + "/MANIFEST.copy");
  auto place = BackupPlace::Open(PosixFileSystem(), place_path());
  ASSERT_TRUE(place.ok());
  const auto id = Copy(place->get(), sealed_path(), origin, false);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(Restored(*id), before);
  EXPECT_TRUE(absl::IsFailedPrecondition(Restore(*id, {.at_version = 1}).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Restore(*id, {.at_time_ms = ManualClock::kStart}).status()));
  ASSERT_TRUE(Restore(*id).ok());
  const auto restored = ReadManifest(PosixFileSystem(), new_path());
  ASSERT_TRUE(restored.ok());
  EXPECT_FALSE(restored->has_history);
  EXPECT_NE(restored->store_id, origin.store_id);
}

TEST_F(RestoreTest, TheNewDirectoryIsNewOrEmpty) {
  OpenStore();
  Fill(0, 50, "value");
  const Spaces before = ContentsOf(store_.get());
  const std::string id = BackUp(false);
  std::filesystem::create_directory(new_path());
  WriteBytes(new_path() + "/mine", "x");
  const auto refused = Restore(id);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_EQ(FilesBelow(new_path()).size(), 1u);
  std::filesystem::remove(new_path() + "/mine");
  EXPECT_EQ(Restored(id), before);
  // Slashes behind the name, and missing directories above it.
  const std::string deep = dir_.File("a/b/c");
  const auto report = RestoreBackup(PosixFileSystem(), PathOf(id) + "/", deep + "//", {}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ContentsAt(deep), before);
  // A directory that only looks like a restore's.
  std::filesystem::create_directory(dir_.File(".incomplete-restored"));
  WriteBytes(dir_.File(".incomplete-restored/mine"), "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(Restore(id).status()));
  EXPECT_TRUE(std::filesystem::exists(dir_.File(".incomplete-restored/mine")));
  EXPECT_TRUE(absl::IsNotFound(
      RestoreBackup(PosixFileSystem(), store_path(), new_path(), {}, {}).status()));
}

TEST_F(RestoreTest, ADryRunWritesNothing) {
  OpenStore();
  Fill(0, 50, "value");
  const std::string id = BackUp(false);
  store_.reset();
  const auto before = FilesBelow(dir_.path());
  const auto report =
      RestoreBackup(PosixFileSystem(), PathOf(id), new_path(), {.dry_run = true}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->bytes, 0u);
  EXPECT_EQ(report->first_new_version, report->version + kRestoredVersionsAhead + 1);
  EXPECT_TRUE(FilesBelow(dir_.path()) == before);
}

TEST_F(RestoreTest, ProgressIsTold) {
  OpenStore();
  Fill(0, 50, "value");
  const std::string id = BackUp(false);
  uint64_t last = 0, total = 0;
  const auto report =
      RestoreBackup(PosixFileSystem(), PathOf(id), new_path(), {}, [&](uint64_t done, uint64_t of) {
        EXPECT_GE(done, last);
        last = done;
        total = of;
      });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, report->bytes);
}

// --- Damage and faults ---------------------------------------------------------------------------

TEST_F(RestoreTest, EachDamagedFileIsNamedAndNothingIsLeft) {
  OpenStore();
  Fill(0, 300, "value");
  const std::string id = BackUp(false);
  for (const auto& file : FilesBelow(PathOf(id))) {
    const std::string& name = file.first;
    const std::string& bytes = file.second;
    const std::string path = PathOf(id) + "/" + name;
    const auto expect_refused = [&](const std::string& how) {
      const auto report = Restore(id);
      EXPECT_TRUE(absl::IsDataLoss(report.status())) << how << name << report.status();
      EXPECT_THAT(std::string(report.status().message()), HasSubstr(name + " is damaged"));
      EXPECT_THAT(Leftovers(), IsEmpty());
    };
    for (const uint64_t offset : {uint64_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      FlipBit(path, offset, 5);
      expect_refused("flipped: ");
      WriteBytes(path, bytes);
    }
    WriteBytes(path, bytes.substr(0, bytes.size() - 1));
    expect_refused("cut: ");
    WriteBytes(path, bytes + "x");
    expect_refused("longer: ");
    std::filesystem::remove(path);
    if (name == "BACKUP") {
      EXPECT_TRUE(absl::IsNotFound(Restore(id).status()));
    } else {
      expect_refused("missing: ");
    }
    WriteBytes(path, bytes);
  }
  WriteBytes(PathOf(id) + "/000099.seg", "foreign");
  ASSERT_TRUE(Restore(id).ok());
  EXPECT_FALSE(std::filesystem::exists(new_path() + "/000099.seg"));
}

// Each call of a restore as of an older version fails once.
TEST_F(RestoreTest, AnyCallMayFail) {
  options_.history.time_ms = 3'600'000;
  OpenStore();
  Fill(0, 50, "value");
  const Spaces before = ContentsOf(store_.get());
  const SequenceNumber version = store_->durable_sequence();
  Fill(30, 30, "more");
  const std::string id = BackUp(false);
  store_.reset();
  FaultFileSystem file_system;
  int failed = 0;
  for (int i = 0; i < static_cast<int>(FileOperation::kCount); ++i) {
    const auto operation = static_cast<FileOperation>(i);
    for (uint64_t nth = 1;; ++nth) {
      const uint64_t failures = file_system.failed_calls();
      file_system.Fail(operation, nth, IoError(EIO, "test", "disk"), /*times=*/1);
      const auto report = Restore(id, {.at_version = version}, &file_system);
      file_system.ClearFaults();
      const std::string when = std::string(NameOf(operation)) + " " + std::to_string(nth);
      const bool all_was_called = file_system.failed_calls() == failures;
      if (report.ok()) {
        EXPECT_EQ(ContentsAt(new_path()), before) << when;
        EXPECT_THAT(Leftovers(), ElementsAre("restored")) << when;
        std::filesystem::remove_all(new_path());
      } else {
        ++failed;
        // What can't be removed is removed by the next restore.
        if (operation != FileOperation::kRemove) EXPECT_THAT(Leftovers(), IsEmpty()) << when;
        EXPECT_FALSE(std::filesystem::exists(new_path())) << when;
      }
      if (all_was_called) break;
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_EQ(Restored(id, {.at_version = version}), before);
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(RestoreTest, AFullDiskLeavesNothing) {
  OpenStore();
  Fill(0, 100, "value");
  const std::string id = BackUp(false);
  const auto backup = ReadBackupList(PosixFileSystem(), PathOf(id));
  ASSERT_TRUE(backup.ok());
  for (const uint64_t more : {uint64_t{0}, uint64_t{1}, backup->new_bytes / 2, backup->new_bytes}) {
    FaultFileSystem file_system;
    file_system.SetFreeBytes(more);
    const auto report = Restore(id, {}, &file_system);
    EXPECT_TRUE(absl::IsResourceExhausted(report.status())) << more << report.status();
    EXPECT_THAT(Leftovers(), IsEmpty());
  }
}

TEST_F(RestoreTest, AKillAtAnyMomentLeavesNoHalfStore) {
  options_.history.time_ms = 3'600'000;
  OpenStore();
  Fill(0, 100, "value");
  const Spaces old = ContentsOf(store_.get());
  const SequenceNumber version = store_->durable_sequence();
  Fill(50, 100, "more");
  const std::string id = BackUp(false);
  const std::string copies = dir_.File("copies");
  std::filesystem::create_directory(copies);
  int kills = 0;
  WatchedFileSystem file_system([&] {
    const std::string copy = copies + "/" + std::to_string(kills++);
    std::filesystem::create_directory(copy);
    for (const char* name : {"restored", ".incomplete-restored"}) {
      if (std::filesystem::exists(dir_.File(name)))
        std::filesystem::copy(dir_.File(name), copy + "/" + name,
                              std::filesystem::copy_options::recursive);
    }
  });
  ASSERT_TRUE(Restore(id, {.at_version = version}, &file_system).ok());
  EXPECT_GT(kills, 15);
  int whole = 0;
  for (int i = 0; i < kills; ++i) {
    const std::string copy = copies + "/" + std::to_string(i);
    if (std::filesystem::exists(copy + "/restored")) {
      EXPECT_EQ(ContentsAt(copy + "/restored"), old) << i;
      ++whole;
      continue;
    }
    // The next restore takes up what was left.
    if (i % 5 != 0) continue;
    const auto report = RestoreBackup(PosixFileSystem(), PathOf(id), copy + "/restored",
                                      {.target = {.at_version = version}}, {});
    ASSERT_TRUE(report.ok()) << i << report.status();
    EXPECT_EQ(ContentsAt(copy + "/restored"), old) << i;
    EXPECT_FALSE(std::filesystem::exists(copy + "/.incomplete-restored"));
  }
  EXPECT_GT(whole, 0);
}

// --- Older versions ------------------------------------------------------------------------------

// A store with a history, and what it held at each version.
class RewindTest : public RestoreTest {
 protected:
  RewindTest() {
    options_.history.time_ms = 3'600'000;
    options_.write_buffer_size = 64 << 10;
  }

  void Note(SequenceNumber version) { states_[version] = ContentsOf(store_.get()); }
  void Put(const std::string& key, const std::string& value, NamespaceId space = 0) {
    WriteBatch batch;
    batch.Put(key, value, space);
    Note(Commit(&batch));
  }
  NamespaceId Create(const std::string& name, std::optional<HistoryLimits> history = {}) {
    const NamespaceId id = store_->Namespaces()->next_id;
    WriteBatch batch;
    batch.CreateNamespace({.id = id, .name = name, .options = {.history = history}});
    Note(Commit(&batch));
    return id;
  }
  void Drop(NamespaceId space) {
    WriteBatch batch;
    batch.DropNamespace(space);
    Note(Commit(&batch));
  }
  // One random change.
  void Change(std::mt19937* random);

  std::map<SequenceNumber, Spaces> states_;
};

void RewindTest::Change(std::mt19937* random) {
  const auto draw = [&](uint32_t n) { return static_cast<uint32_t>((*random)() % n); };
  const NamespaceList list = *store_->Namespaces();
  const NamespaceDescription& space =
      list.namespaces[draw(static_cast<uint32_t>(list.namespaces.size()))];
  const NamespaceDescription& other =
      list.namespaces[draw(static_cast<uint32_t>(list.namespaces.size()))];
  const auto key = [&] { return fmt::format("k{:03}", draw(200)); };
  WriteBatch batch;
  switch (draw(17)) {
    case 0:
      if (list.namespaces.size() < 6)
        batch.CreateNamespace({.id = list.next_id, .name = fmt::format("n{}", list.next_id)});
      break;
    case 1:
      if (space.id != 0) batch.DropNamespace(space.id);
      break;
    case 2:
      if (space.id != other.id) batch.SwapNamespaces(space.id, other.id);
      break;
    case 3:
      if (list.namespaces.size() < 6) {
        batch.CloneNamespace(space.id,
                             {.id = list.next_id, .name = fmt::format("c{}", list.next_id)});
      }
      break;
    case 4:
      batch.DeleteRange("k050", "k100", space.id);
      break;
    case 5:
      if (draw(4) == 0) batch.ClearNamespace(space.id);
      break;
    case 6:
      batch.Delete(key(), space.id);
      break;
    case 7:
      ASSERT_TRUE(store_->Flush().ok());
      break;
    case 8: {
      // One that was dropped comes back.
      const std::vector<DroppedNamespace> dropped = *store_->DroppedNamespaces();
      if (dropped.empty() || list.Find(dropped.back().space.id) != nullptr) break;
      batch.CloneNamespaceAt(dropped.back().space.id, dropped.back().dropped_at - 1,
                             dropped.back().space);
      break;
    }
    default:
      for (uint32_t i = draw(20); i-- > 0;) {
        batch.Put(key(), fmt::format("{}{}", (*random)(), std::string(draw(8) * 500, 'x')),
                  space.id);
      }
  }
  clock_.Advance(draw(3000));
  if (!batch.empty()) Note(Commit(&batch));
}

TEST_F(RewindTest, EveryVersionIsRestoredAsItWas) {
  OpenStore();
  std::mt19937 random(22);
  for (int i = 0; i < 250; ++i) Change(&random);
  const std::string id = BackUp(false);
  // As long as the history reaches, whatever the time is now.
  clock_.Advance(7'200'000);
  int i = 0;
  for (const auto& [version, state] : states_) {
    if (i++ % 12 != 0 && version != states_.rbegin()->first) continue;
    EXPECT_EQ(Restored(id, {.at_version = version}), state) << version;
  }
}

TEST_F(RewindTest, ARewoundStoreGoesOnAndIsBackedUpAgain) {
  OpenStore();
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) Change(&random);
  const auto middle = std::next(states_.begin(), static_cast<int>(states_.size() / 2));
  const std::string id = BackUp(false);
  ASSERT_TRUE(Restore(id, {.at_version = middle->first}).ok());
  store_.reset();
  std::filesystem::remove_all(store_path());
  std::filesystem::rename(new_path(), store_path());
  OpenStore();
  EXPECT_EQ(ContentsOf(store_.get()), middle->second);
  const Spaces old = middle->second;
  states_.clear();
  for (int i = 0; i < 50; ++i) Change(&random);
  ASSERT_TRUE(store_->Compact("", "", 0).ok());
  const Spaces now = ContentsOf(store_.get());
  const auto then = std::next(states_.begin(), static_cast<int>(states_.size() / 2));
  const std::string second = BackUp(true);
  EXPECT_EQ(Restored(second), now);
  EXPECT_EQ(Restored(second, {.at_version = then->first}), then->second);
}

TEST_F(RewindTest, NamespacesGoAndComeBack) {
  OpenStore();
  const NamespaceId kept = Create("kept");
  const NamespaceId dropped = Create("dropped");
  Put("a", "1", kept);
  Put("a", "2", dropped);
  const SequenceNumber version = states_.rbegin()->first;
  const Spaces state = states_.rbegin()->second;
  Drop(dropped);
  Create("later");
  // The name of the dropped one is another one's now.
  Create("dropped");
  Put("a", "3", kept);
  const std::string id = BackUp(false);
  const auto report = Restore(id, {.at_version = version});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ContentsAt(new_path()), state);
  EXPECT_EQ(report->version, version);
  EXPECT_THAT(report->rewound, UnorderedElementsAre("0", "kept"));
  EXPECT_THAT(report->brought_back, ElementsAre("dropped"));
  EXPECT_THAT(report->dropped, UnorderedElementsAre("later", "dropped"));
  const auto options = [&] {
    auto store = StorageEngine::Open(new_path(), options_);
    return (*store)->Namespaces()->Find("dropped")->id;
  }();
  EXPECT_EQ(options, dropped);
}

TEST_F(RewindTest, GroupsOfKeysAreKeptAndRefuseTheSame) {
  OpenStore();
  const NamespaceId users = store_->Namespaces()->next_id, gone = users + 1;
  WriteBatch batch;
  batch.CreateNamespace(
      {.id = users, .name = "users", .options = {.grouping = KeyGrouping::By(':')}});
  Commit(&batch);
  batch.CreateNamespace(
      {.id = gone, .name = "gone", .options = {.grouping = KeyGrouping::Together()}});
  Commit(&batch);
  Put("a:1", "1", gone);
  Put("a:1", "1", users);
  const SequenceNumber version = states_.rbegin()->first;
  const Spaces state = states_.rbegin()->second;
  Put("a:1", "2", users);
  Drop(gone);
  const std::string id = BackUp(false);
  for (const RestoreTarget& target : {RestoreTarget(), RestoreTarget{.at_version = version}}) {
    const auto report = Restore(id, target);
    ASSERT_TRUE(report.ok()) << report.status();
    if (target.at_version) {
      EXPECT_EQ(ContentsAt(new_path()), state);
    }
    auto restored = *StorageEngine::Open(new_path(), options_);
    EXPECT_EQ(restored->GroupsOf(users), KeyGrouping::By(':'));
    const std::optional<KeyGrouping> brought_back = restored->GroupsOf(gone);
    EXPECT_EQ(brought_back == KeyGrouping::Together(), target.at_version.has_value());
    batch.Put("a:1", "lost", users);
    batch.Put("b:1", "lost", users);
    EXPECT_TRUE(IsCrossGroup(restored->Write({}, &batch).status()));
    batch.Clear();
    restored.reset();
    std::filesystem::remove_all(new_path());
  }
}

TEST_F(RewindTest, ATimeIsTheNewestVersionAtItOrBefore) {
  OpenStore();
  clock_.Advance(1000);
  std::map<uint64_t, SequenceNumber> times;
  for (int i = 0; i < 20; ++i) {
    Put("key", std::to_string(i));
    times[clock_.WallMillis()] = states_.rbegin()->first;
    clock_.Advance(10'000);
  }
  sealed_ms_ = clock_.WallMillis();
  const std::string id = BackUp(false);
  const auto first = times.begin()->first, last = times.rbegin()->first;
  for (const auto& [time, version] : times) {
    for (const uint64_t at : {time, time + 9000}) {
      RestoreOptions options{.target = {.at_time_ms = at}, .dry_run = true};
      const auto report = RestoreBackup(PosixFileSystem(), PathOf(id), new_path(), options, {});
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->version, version) << at - first;
      EXPECT_EQ(report->instant_ms, time);
    }
  }
  const uint64_t middle = std::next(times.begin(), 9)->first;
  EXPECT_EQ(Restored(id, {.at_time_ms = middle + 5000}), states_[times[middle]]);
  EXPECT_EQ(Restored(id, {.at_time_ms = last}), states_[times[last]]);
  const auto early = Restore(id, {.at_time_ms = first - 5000});
  EXPECT_TRUE(absl::IsOutOfRange(early.status())) << early.status();
  EXPECT_THAT(std::string(early.status().message()), HasSubstr("the earliest time is 2023-11-14T"));
  const auto late = Restore(id, {.at_time_ms = last + 3'600'000});
  EXPECT_TRUE(absl::IsOutOfRange(late.status())) << late.status();
  EXPECT_TRUE(absl::IsInvalidArgument(Restore(id, {.at_version = 1, .at_time_ms = 1}).status()));
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(RewindTest, WhatIsNotKeptIsRefusedWithWhatCanBeHad) {
  options_.history = {};
  OpenStore();
  const NamespaceId kept = Create("kept", HistoryLimits{.time_ms = 3'600'000});
  const NamespaceId bare = Create("bare");
  Put("a", "1", kept);
  const SequenceNumber version = states_.rbegin()->first;
  const Spaces state = states_.rbegin()->second;
  Put("a", "2", kept);
  Put("a", "2", bare);
  const Spaces now = states_.rbegin()->second;
  const std::string id = BackUp(false);
  const auto refused = Restore(id, {.at_version = version});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              AnyOf(HasSubstr("'0' keeps no history"), HasSubstr("'bare' keeps no history")));
  // One that keeps its versions is restored alone.
  EXPECT_EQ(Restored(id, {.at_version = version, .name_space = "kept"}),
            (Spaces{{"0", {}}, {"kept", state.at("kept")}}));
  EXPECT_EQ(Restored(id), now);
  const auto ahead = Restore(id, {.at_version = 1'000'000});
  EXPECT_TRUE(absl::IsOutOfRange(ahead.status())) << ahead.status();
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(RewindTest, VersionsBeforeTheHorizonNameTheEarliest) {
  options_.history = {.time_ms = 10'000};
  OpenStore();
  for (int i = 0; i < 10; ++i) {
    Put("key", std::to_string(i));
    clock_.Advance(3000);
  }
  ASSERT_TRUE(store_->Flush().ok());
  Put("key", "last");
  const std::string id = BackUp(false);
  const auto refused = Restore(id, {.at_version = 2});
  ASSERT_TRUE(absl::IsOutOfRange(refused.status())) << refused.status();
  const std::string message(refused.status().message());
  const size_t at = message.find("its earliest version is ");
  ASSERT_NE(at, std::string::npos) << message;
  const SequenceNumber first = std::stoull(message.substr(at + 24));
  EXPECT_GT(first, 2u);
  EXPECT_TRUE(absl::IsOutOfRange(Restore(id, {.at_version = first - 1}).status()));
  for (const auto& [version, state] : states_) {
    if (version >= first) EXPECT_EQ(Restored(id, {.at_version = version}), state) << version;
  }
}

TEST_F(RewindTest, OneNamespaceAloneIsRestored) {
  OpenStore();
  const NamespaceId one = Create("one");
  const NamespaceId two = Create("two");
  Put("a", "0");
  Put("b", "1", one);
  Put("c", "2", two);
  const SequenceNumber version = states_.rbegin()->first;
  const Spaces state = states_.rbegin()->second;
  {
    WriteBatch batch;  // shares its contents with "one"
    batch.CloneNamespace(one, {.id = store_->Namespaces()->next_id, .name = "clone"});
    Note(Commit(&batch));
  }
  Put("b", "3", one);
  Drop(two);
  const Spaces now = states_.rbegin()->second;
  const std::string id = BackUp(false);
  EXPECT_EQ(Restored(id, {.name_space = "0"}), (Spaces{{"0", now.at("0")}}));
  EXPECT_EQ(Restored(id, {.name_space = "one"}), (Spaces{{"0", {}}, {"one", now.at("one")}}));
  EXPECT_EQ(Restored(id, {.name_space = "clone"}), (Spaces{{"0", {}}, {"clone", now.at("clone")}}));
  EXPECT_EQ(Restored(id, {.at_version = version, .name_space = "two"}),
            (Spaces{{"0", {}}, {"two", state.at("two")}}));
  const auto missing = Restore(id, {.name_space = "two"});
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("it has 0, one, clone"));
  EXPECT_TRUE(
      absl::IsNotFound(Restore(id, {.at_version = version, .name_space = "clone"}).status()));
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(RewindTest, KeysThatExpireGoInTheirTime) {
  OpenStore();
  WriteBatch batch;
  batch.Put("soon", "1", 0, clock_.WallMillis() + 5000);
  batch.Put("later", "2", 0, clock_.WallMillis() + 60'000);
  batch.Put("never", "3");
  const SequenceNumber version = Commit(&batch);
  clock_.Advance(10'000);
  Put("never", "4");
  const std::string id = BackUp(false);
  EXPECT_EQ(Restored(id, {.at_version = version}),
            (Spaces{{"0", {{"later", "2"}, {"never", "3"}}}}));
  clock_.Advance(100'000);
  const auto report = Restore(id, {.at_version = version});
  ASSERT_TRUE(report.ok()) << report.status();
  EngineOptions options = options_;
  auto store = StorageEngine::Open(new_path(), options);
  ASSERT_TRUE(store.ok());
  std::string value;
  const auto read = (*store)->Get({}, "later", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->found);
}

// The sweeper has removed the key and forgotten that it was to expire: a clone of the past must not
// show it again.
TEST_F(RewindTest, KeysThatWereRemovedWhenTheyExpiredStayAway) {
  OpenStore();
  WriteBatch batch;
  batch.Put("soon", "1", 0, clock_.WallMillis() + 5000);
  batch.Put("never", "2");
  const SequenceNumber version = Commit(&batch);
  clock_.Advance(10'000);
  ASSERT_TRUE(store_->Count({}, "", "").ok());  // which sweeps
  Put("never", "3");
  const std::string id = BackUp(false);
  const Spaces state = {{"0", {{"never", "2"}}}};
  EXPECT_EQ(Restored(id, {.at_version = version}), state);
  ASSERT_TRUE(Restore(id, {.at_version = version}).ok());
  // Also where the machine's clock is set back.
  clock_.SetWall(ManualClock::kStart);
  EXPECT_EQ(ContentsAt(new_path()), state);
}

TEST_F(RewindTest, TheBackupThatReachesToATimeIsChosen) {
  BackupListing listing;
  EXPECT_TRUE(absl::IsNotFound(ChooseBackup(listing, {}).status()));
  for (uint64_t i = 1; i <= 3; ++i) {
    BackupDescription backup;
    backup.id = BackupIdOf(i * 1'000'000, i * 100);
    backup.store_id = 5;
    backup.version = i * 100;
    backup.sealed_ms = i * 1'000'000;
    listing.backups.push_back(backup);
  }
  BackupDescription other = listing.backups[0];
  other.store_id = 6;
  other.version = 1000;
  listing.backups.insert(listing.backups.begin(), other);
  const auto choose = [&](const RestoreTarget& target) {
    return ChooseBackup(listing, target).value_or("none");
  };
  EXPECT_EQ(choose({}), listing.backups[3].id);
  EXPECT_EQ(choose({.at_version = 100}), listing.backups[1].id);
  EXPECT_EQ(choose({.at_version = 101}), listing.backups[2].id);
  EXPECT_EQ(choose({.at_version = 301}), "none");
  EXPECT_EQ(choose({.at_time_ms = 2'000'000}), listing.backups[2].id);
  EXPECT_EQ(choose({.at_time_ms = 2'000'001}), listing.backups[3].id);
  EXPECT_EQ(choose({.at_time_ms = 3'000'001}), "none");
}

}  // namespace
}  // namespace varve
