// What a repair makes of damaged stores: it opens, nothing damaged is left, every key that could be
// read before has its value, those that are lost or older than they should be are in the list, and
// the originals are still there. Also when it is interrupted.
#include "tools/repair/repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/segment/segment_footer.h"
#include "type/version.h"
#include "unit-tests/corruption/store_image.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::Content;
using testing::ContentOf;
using testing::DamageStep;
using ::testing::HasSubstr;
using testing::ImageOptions;
using testing::Killed;
using testing::kStoreDirectory;
using testing::MakeStoreImage;
using testing::MemoryFileSystem;
using testing::NameOf;
using testing::ReadDamagedStore;
using testing::Reading;
using testing::StoreImage;
using Files = MemoryFileSystem::Files;

std::string Directory() { return std::string(kStoreDirectory); }

std::string Listed(const RepairReport& report) {
  std::string text;
  for (const RepairReport::Entry& entry : report.lost) {
    text += entry.file + " " + std::to_string(entry.offset) + " " + entry.what + "\n";
  }
  return text;
}

class RepairTest : public ::testing::Test {
 protected:
  RepairTest() : files_(Killed().files) {}

  std::string& Bytes(const std::string& path) { return files_.at(path); }
  void Flip(const std::string& path, uint64_t offset) {
    Bytes(path)[offset] = static_cast<char>(Bytes(path)[offset] ^ (1 << offset % 8));
  }
  std::string Segment(int index) const {
    for (const auto& [path, bytes] : files_) {
      if (path.ends_with(".seg") && index-- == 0) return path;
    }
    return "";
  }
  // The file with these bytes, which no segment holds.
  static std::string Log(const std::string& bytes = "logged 90") {
    for (const auto& [path, content] : Killed().files) {
      if (path.ends_with(".log") && content.find(bytes) != std::string::npos) return path;
    }
    return "";
  }
  static SegmentFooter FooterOf(const std::string& path) {
    return testing::FooterOf(Killed().files, path);
  }

  // Repairs files_, which are damaged, and checks what holds for every repair.
  void Repair() {
    MemoryFileSystem file_system(files_);
    const auto report = RepairStore(&file_system, Directory(), {});
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_FALSE(report->lost.empty());
    report_ = *report;
    repaired_ = file_system.files();
    ExpectOriginalsKept(repaired_);
    MemoryFileSystem again(repaired_);
    const auto verified = VerifyStore(&again, Directory(), {});
    ASSERT_TRUE(verified.ok()) << verified.status();
    for (const StoreFinding& finding : verified->findings) {
      ASSERT_NE(finding.kind, StoreFinding::Kind::kDamage) << finding.file << ' ' << finding.what;
    }
    const auto second = RepairStore(&again, Directory(), {});
    ASSERT_TRUE(second.ok() && second->nothing_to_do()) << second.status();
    content_ = ContentOf(repaired_);
  }
  void ExpectOriginalsKept(const Files& repaired) const {
    std::set<std::string> kept;
    for (const auto& [path, bytes] : repaired) kept.insert(bytes);
    for (const auto& [path, bytes] : files_) {
      EXPECT_TRUE(kept.contains(bytes) || path.find("MANIFEST") != std::string::npos) << path;
    }
  }
  // Keys for which `is_affected` says no have the model's values; all others have some that they
  // once had, or none.
  template <typename Affected>
  void ExpectValues(const Affected& is_affected) const {
    for (const auto& [key, value] : content_) {
      const auto history = Killed().history.find(key);
      ASSERT_TRUE(history != Killed().history.end() && history->second.contains(value))
          << key << '=' << value;
    }
    for (const std::string& key : Killed().probes) {
      if (is_affected(key)) continue;
      const auto expected = Killed().model.find(key), found = content_.find(key);
      ASSERT_EQ(found != content_.end(), expected != Killed().model.end()) << key << '\n'
                                                                           << Listed(report_);
      if (found != content_.end()) {
        ASSERT_EQ(found->second, expected->second) << key;
      }
    }
  }
  void ExpectAllValues() const {
    ExpectValues([](const std::string&) { return false; });
  }

  Files files_;  // damaged
  Files repaired_;
  RepairReport report_;
  Content content_;
};

TEST_F(RepairTest, AStoreThatIsWholeIsLeftAlone) {
  MemoryFileSystem file_system(files_);
  const auto report = RepairStore(&file_system, Directory(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->nothing_to_do());
  EXPECT_EQ(file_system.changes(), 0u);
  EXPECT_TRUE(absl::IsNotFound(RepairStore(&file_system, "nowhere", {}).status()));
}

// What could be read before has its value, wherever the flip was.
TEST_F(RepairTest, AFlipAnywhereInASegment) {
  for (int index = 0; index < 4; ++index) {
    const std::string path = Segment(index);
    for (uint64_t offset = 0; offset < Bytes(path).size(); offset += 31 * DamageStep()) {
      SCOPED_TRACE(path + " with a flip at " + std::to_string(offset));
      Flip(path, offset);
      const Reading before = ReadDamagedStore(Killed(), files_, path, offset);
      Repair();
      const SegmentFooter footer = FooterOf(path);
      const bool records_are_whole = offset >= footer.data_size;
      const bool ranges_are_whole =
          offset < footer.range_tombstones_offset || footer.info.range_tombstones == 0;
      ExpectValues([&](const std::string& key) {
        return !(records_are_whole && ranges_are_whole) && before.failed.contains(key);
      });
      EXPECT_THAT(Listed(report_), HasSubstr(NameOf(path)));
      EXPECT_EQ(Listed(report_).find("may be back") == std::string::npos, records_are_whole);
      EXPECT_EQ(Listed(report_).find("are back") == std::string::npos, ranges_are_whole);
      Flip(path, offset);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RepairTest, ASegmentCutAnywhere) {
  for (int index = 0; index < 4; ++index) {
    const std::string path = Segment(index), whole = Bytes(path);
    for (uint64_t size = 0; size < whole.size(); size += 97 * DamageStep()) {
      SCOPED_TRACE(path + " cut to " + std::to_string(size));
      Bytes(path) = whole.substr(0, size);
      const Reading before = ReadDamagedStore(Killed(), files_, path, size);
      Repair();
      const SegmentFooter footer = FooterOf(path);
      const bool all_there = size >= footer.data_size && footer.info.range_tombstones == 0;
      ExpectValues(
          [&](const std::string& key) { return !all_there && before.failed.contains(key); });
      if (HasFailure()) return;
    }
    Bytes(path) = whole;
  }
}

TEST_F(RepairTest, AMissingSegment) {
  files_.erase(Segment(1));
  Repair();
  EXPECT_THAT(Listed(report_), HasSubstr("missing, with"));
}

// Operations before and behind the damage go on; the damaged ones are listed by their numbers.
TEST_F(RepairTest, AFlipAnywhereInTheLog) {
  const std::string path = Log();
  const uint64_t used = Bytes(path).find_last_not_of('\0') + 1;
  std::set<std::string> logged = {"key0200"};
  for (int i = 2; i < 8; ++i) logged.insert("key000" + std::to_string(i));
  for (int i = 60; i < 65; ++i) logged.insert("key00" + std::to_string(i));
  for (int i = 90; i < 100; ++i) logged.insert("key00" + std::to_string(i));
  uint64_t repaired = 0;
  for (uint64_t offset = 0; offset < used; offset += 3 * DamageStep()) {
    if (Bytes(path)[offset] == 0 && offset % 97 != 0) continue;
    SCOPED_TRACE("flip at " + std::to_string(offset));
    Flip(path, offset);
    if (!ReadDamagedStore(Killed(), files_, path, 0).opened.ok()) {
      Repair();
      ++repaired;
      size_t wrong = 0;
      ExpectValues([&](const std::string& key) {
        const auto expected = Killed().model.find(key);
        const auto found = std::as_const(content_).find(key);
        const bool right = found == content_.end() ? expected == Killed().model.end()
                                                   : expected != Killed().model.end() &&
                                                         found->second == expected->second;
        wrong += !right;
        return logged.contains(key);
      });
      EXPECT_LE(wrong, offset < kLogPageSize ? 0u : 5u)
          << "one operation, at most a deleted range of five";
    }
    Flip(path, offset);
    if (HasFailure()) return;
  }
  EXPECT_GT(repaired, 0u);
}

TEST_F(RepairTest, ALogCutAnywhere) {
  const std::string path = Log(), whole = Bytes(path);
  for (uint64_t size = 0; size < whole.size(); size += 1009) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    Bytes(path) = whole.substr(0, size);
    // Nothing was cut that the next file misses.
    if (ReadDamagedStore(Killed(), files_, path, 0).opened.ok()) continue;
    Repair();
    EXPECT_THAT(Listed(report_), HasSubstr("are lost"));
    ExpectValues([&](const std::string& key) {
      return key < "key0008" || (key >= "key0060" && key < "key0100") || key == "key0200";
    });
    if (HasFailure()) return;
  }
}

TEST_F(RepairTest, TheLastLogFileCut) {
  Bytes(Log("the last one")).resize(2 * kLogPageSize);
  Repair();
  EXPECT_THAT(Listed(report_), HasSubstr("on are lost, if there were any"));
}

TEST_F(RepairTest, TheManifestsCopyTakesItsPlace) {
  const std::string path = Killed().Path("MANIFEST");
  for (uint64_t offset = 0; offset < Bytes(path).size(); offset += 11) {
    Flip(path, offset);
    Repair();
    ExpectAllValues();
    Flip(path, offset);
  }
  files_.erase(path);
  Repair();
  ExpectAllValues();
  EXPECT_THAT(Listed(report_), HasSubstr("nothing is lost"));
}

// A newer program wrote it, so that a manifest which this one rebuilt would lack what it does not
// know of.
TEST_F(RepairTest, AStoreOfANewerProgramIsLeftAlone) {
  for (const std::string name : {"MANIFEST", "MANIFEST.copy"}) {
    std::string& bytes = Bytes(Killed().Path(name));
    const uint32_t version = kManifestFormatVersion + 1;
    EncodeFixed32(bytes.data() + 8, version);
    EncodeFixed32(bytes.data() + 12, Checksum(std::string_view(bytes).substr(16), version));
  }
  MemoryFileSystem file_system(files_);
  const absl::Status refused = RepairStore(&file_system, Directory(), {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(file_system.files(), files_);
}

TEST_F(RepairTest, WithoutAnyManifestTheTreeIsRebuilt) {
  files_.erase(Killed().Path("MANIFEST"));
  Flip(Killed().Path("MANIFEST.copy"), 30);
  Repair();
  ExpectAllValues();
  EXPECT_THAT(Listed(report_), HasSubstr("4 segments and the log merged into one"));
  // And where a segment is damaged, too.
  Flip(Segment(0), 100);
  Repair();
  EXPECT_THAT(Listed(report_), HasSubstr("may be back"));
  const Reading before = ReadDamagedStore(Killed(), Killed().files, Segment(0), 0);
  ASSERT_TRUE(before.opened.ok());
  size_t wrong = 0;
  for (const auto& [key, value] : Killed().model)
    wrong += !content_.contains(key) || content_.at(key) != value;
  EXPECT_LE(wrong, 1u);
}

// A crash can leave the segments that a merge wrote, and those that it replaced: most records are
// in two of them, with the same sequence.
TEST_F(RepairTest, RecordsThatTwoSegmentsHoldAreMergedIntoOne) {
  MemoryFileSystem merged(files_);
  {
    const auto store = StorageEngine::Open(Directory(), ImageOptions(&merged));
    ASSERT_TRUE(store.ok() && (*store)->Flush().ok()) << store.status();
    files_ = merged.files();
    ASSERT_TRUE((*store)->Compact({}, {}).ok() && (*store)->Close().ok());
  }
  int segments = 0;
  for (const auto& [path, bytes] : merged.files()) {
    if (path.ends_with(".seg")) files_.emplace(path, bytes);
  }
  for (const auto& [path, bytes] : files_) segments += path.ends_with(".seg");
  ASSERT_EQ(segments, 6) << "four, what was flushed, and what they were merged into";
  files_.erase(Killed().Path("MANIFEST"));
  files_.erase(Killed().Path("MANIFEST.copy"));
  Repair();
  ExpectAllValues();
  EXPECT_THAT(Listed(report_), HasSubstr("6 segments and the log merged into one"));
  uint64_t records = 0;
  MemoryFileSystem repaired(repaired_);
  for (const auto& [path, bytes] : repaired_) {
    const auto number = ParseSegmentName(NameOf(path));
    if (!number) continue;
    const auto footer =
        ReadSegmentFooter(*repaired.OpenForRead(path).value(), *number, bytes.size(), nullptr);
    records += footer.value().info.entries;
  }
  EXPECT_EQ(records, Killed().model.size());
}

TEST_F(RepairTest, WithoutAnyManifestOtherNamespacesHaveNamesOfTheirOwn) {
  MemoryFileSystem file_system;
  {
    const auto store = StorageEngine::Open(Directory(), ImageOptions(&file_system)).value();
    WriteBatch batch;
    batch.CreateNamespace({.id = kFirstNamedNamespace, .name = "users"});
    batch.Put("first", "1");
    batch.Put("second", "2", kFirstNamedNamespace);
    ASSERT_TRUE(store->Write({}, &batch).ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  for (const std::string name : {"MANIFEST", "MANIFEST.copy"}) {
    ASSERT_TRUE(file_system.Remove(Directory() + "/" + name).ok());
  }
  const absl::StatusOr<RepairReport> report = RepairStore(&file_system, Directory(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto store = StorageEngine::Open(Directory(), ImageOptions(&file_system)).value();
  const NamespaceList list = store->Namespaces().value();
  ASSERT_EQ(list.namespaces.size(), 2u);
  ASSERT_NE(list.Find("recovered-1"), nullptr);
  std::string first, second;
  EXPECT_TRUE(store->Get({.space = list.Find("recovered-1")->id}, "first", &first)->found);
  EXPECT_TRUE(store->Get({}, "second", &second)->found);
  EXPECT_EQ(first + second, "12");
}

TEST_F(RepairTest, ASpareThatACrashLeftIsNoDamage) {
  files_[Directory() + "/000099.seg.spare"] = "of another file";
  MemoryFileSystem file_system(files_);
  uint64_t done = 0, total = 0;
  const auto verified = VerifyStore(&file_system, Directory(), [&](uint64_t now_done, uint64_t of) {
    done = now_done;
    total = of;
  });
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->damaged_places, 0u);
  EXPECT_EQ(done, total);
  const auto is_told = [](const StoreFinding& found) {
    return found.kind == StoreFinding::Kind::kLeftover && found.file == "000099.seg.spare";
  };
  EXPECT_TRUE(std::any_of(verified->findings.begin(), verified->findings.end(), is_told));
}

// A page that the device can't read is damage like any other.
TEST_F(RepairTest, ABadSectorInASegmentAndInTheLog) {
  MemoryFileSystem file_system(files_);
  file_system.SpoilPage(Segment(0), 0);
  file_system.SpoilPage(Log(), 2 * kLogPageSize);
  const auto verified = VerifyStore(&file_system, Directory(), {});
  ASSERT_TRUE(verified.ok()) << verified.status();
  std::string found;
  for (const StoreFinding& finding : verified->findings)
    found += finding.file + ": " + finding.what + "\n";
  EXPECT_THAT(found, HasSubstr("read " + Segment(0) + " at offset 0: Input/output error"));
  EXPECT_THAT(found, HasSubstr("read " + Log() + " at offset 8192: Input/output error"));
  const auto report = RepairStore(&file_system, Directory(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  report_ = *report;
  Files repaired = file_system.files();
  std::erase_if(repaired,
                [](const auto& file) { return file.first.find("/damaged/") != std::string::npos; });
  content_ = ContentOf(repaired);
  EXPECT_GT(content_.size(), Killed().model.size() / 2);
}

// Killed after each of its steps, and started again: the same store comes out, and nobody opens
// what is half repaired.
TEST_F(RepairTest, InterruptedAnywhere) {
  for (const bool without_manifest : {false, true}) {
    files_ = Killed().files;
    Flip(Segment(1), 200);
    Flip(Segment(2), FooterOf(Segment(2)).table_offset + 100);
    Flip(Log("logged 95"), Bytes(Log("logged 95")).find("logged 95"));
    if (without_manifest) {
      Flip(Killed().Path("MANIFEST"), 40);
      files_.erase(Killed().Path("MANIFEST.copy"));
    }
    Repair();
    const Content expected = content_;
    bool finished = false;
    for (uint64_t calls = 0; !finished; ++calls) {
      SCOPED_TRACE("killed after " + std::to_string(calls) + " calls");
      MemoryFileSystem file_system(files_);
      file_system.CutAfter(calls);
      finished = RepairStore(&file_system, Directory(), {}).ok();
      const Files half = file_system.files();
      if (half.contains(RepairPlanPath(Directory()))) {
        MemoryFileSystem opened(half);
        EXPECT_TRUE(absl::IsFailedPrecondition(
            StorageEngine::Open(Directory(), ImageOptions(&opened)).status()));
      }
      MemoryFileSystem rest(half);
      const auto report = RepairStore(&rest, Directory(), {});
      ASSERT_TRUE(report.ok()) << report.status();
      ExpectOriginalsKept(rest.files());
      ASSERT_EQ(ContentOf(rest.files()), expected);
    }
  }
}

}  // namespace
}  // namespace varve
