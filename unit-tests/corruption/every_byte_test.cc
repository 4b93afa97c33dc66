// One bit flipped in every byte of every file of a store, and each file cut at every length: no
// answer is ever wrong, nothing is missing without an error that names file and offset, and what
// refuses to start is the manifest or what was acknowledged of the log.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/format/log_format.h"
#include "db/segment/segment_footer.h"
#include "tools/verify.h"
#include "unit-tests/corruption/store_image.h"

namespace varve {
namespace {

using testing::DamageStep;
using testing::FooterOf;
using testing::Killed;
using testing::kStoreDirectory;
using testing::MakeDenseStoreImage;
using testing::MakeStoreImage;
using testing::MemoryFileSystem;
using testing::NameOf;
using testing::ReadDamagedStore;
using testing::Reading;
using testing::StoreImage;
using Files = MemoryFileSystem::Files;

// What verify says of the files; the damage it names is in `path`.
bool VerifyFinds(const Files& files, const std::string& path) {
  MemoryFileSystem file_system(&files);
  const auto report = VerifyStore(&file_system, std::string(kStoreDirectory), {});
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return false;
  EXPECT_EQ(file_system.changes(), 0u);
  bool is_unused = false;
  for (const StoreFinding& finding : report->findings) {
    EXPECT_TRUE(finding.kind != StoreFinding::Kind::kDamage || finding.file == NameOf(path))
        << finding.file << ' ' << finding.what;
    is_unused |= finding.kind == StoreFinding::Kind::kUnused && finding.file == NameOf(path);
  }
  return report->damaged_places > 0 || is_unused;
}

void ExpectRefusal(const Reading& reading, const std::string& path) {
  ASSERT_TRUE(absl::IsDataLoss(reading.opened)) << reading.opened;
  const std::string message(reading.opened.message());
  ASSERT_NE(message.find(path + " is damaged at offset "), std::string::npos) << message;
  ASSERT_NE(message.find("client_main repair data"), std::string::npos) << message;
}

class EveryByteTest : public ::testing::Test {
 protected:
  virtual const StoreImage& image() const { return Killed(); }
  virtual uint64_t step() const { return DamageStep(); }
  // Calls `expect` with what was read for a flip in each byte of the file that is to be tried.
  template <typename Wanted, typename Expect>
  void Flip(const std::string& path, const Wanted& wanted, const Expect& expect) {
    Files files = image().files;
    std::string& bytes = files.at(path);
    for (uint64_t offset = 0; offset < bytes.size(); offset += step()) {
      if (!wanted(offset)) continue;
      SCOPED_TRACE(path + " with a flip at " + std::to_string(offset));
      const char before = bytes[offset];
      bytes[offset] = static_cast<char>(before ^ (1 << (offset * 5 + 1) % 8));
      expect(offset, ReadDamagedStore(image(), files, path, offset), VerifyFinds(files, path));
      bytes[offset] = before;
      ++tried_;
      if (HasFailure()) return;
    }
  }
  template <typename Wanted, typename Expect>
  void Cut(const std::string& path, const Wanted& wanted, const Expect& expect) {
    const std::string& whole = image().files.at(path);
    Files files = image().files;
    for (uint64_t size = 0; size < whole.size(); size += step()) {
      if (!wanted(size)) continue;
      SCOPED_TRACE(path + " cut to " + std::to_string(size));
      files.at(path) = whole.substr(0, size);
      expect(size, ReadDamagedStore(image(), files, path, size), VerifyFinds(files, path));
      ++tried_;
      if (HasFailure()) return;
    }
  }
  // Flips and cuts the file whose name ends so: the store answers as before, and verify finds it.
  void ExpectHarmless(const std::string& ending);
  void TearDown() override { RecordProperty("tried", static_cast<int>(tried_)); }

  uint64_t tried_ = 0;
};

bool All(uint64_t) { return true; }

void EveryByteTest::ExpectHarmless(const std::string& ending) {
  std::string path;
  for (const auto& [name, bytes] : Killed().files) {
    if (name.ends_with(ending)) path = name;
  }
  ASSERT_FALSE(path.empty());
  const auto harmless = [](uint64_t, const Reading& reading, bool found) {
    EXPECT_TRUE(reading.opened.ok() && reading.scanned && reading.failed_keys == 0)
        << reading.opened;
    EXPECT_TRUE(found);
  };
  Flip(path, All, harmless);
  Cut(path, All, harmless);
}

TEST_F(EveryByteTest, TheImageIsWhole) {
  const Reading reading = ReadDamagedStore(Killed(), Killed().files, "none", 0);
  ASSERT_TRUE(reading.opened.ok()) << reading.opened;
  EXPECT_TRUE(reading.scanned);
  EXPECT_EQ(reading.failed_keys, 0u);
  EXPECT_FALSE(VerifyFinds(Killed().files, "none"));
  int segments = 0;
  for (const auto& [path, bytes] : Killed().files) segments += path.ends_with(".seg");
  EXPECT_EQ(segments, 4);
}

TEST_F(EveryByteTest, TheManifest) {
  const std::string path = Killed().Path("MANIFEST");
  const auto refused = [&](uint64_t, const Reading& reading, bool found) {
    ExpectRefusal(reading, path);
    EXPECT_TRUE(found);
  };
  Flip(path, All, refused);
  Cut(path, All, refused);
}

TEST_F(EveryByteTest, TheCopyOfTheManifest) {
  const std::string path = Killed().Path("MANIFEST.copy");
  const auto harmless = [&](uint64_t, const Reading& reading, bool found) {
    EXPECT_TRUE(reading.opened.ok() && reading.scanned && reading.failed_keys == 0)
        << reading.opened;
    EXPECT_TRUE(found);
  };
  Flip(path, All, harmless);
  Cut(path, All, harmless);
}

// The store opens without the time file or the file of changes, and verify finds the damage.
TEST_F(EveryByteTest, TheTimeFile) { ExpectHarmless(".tim"); }
TEST_F(EveryByteTest, TheChangeFile) { ExpectHarmless(".chg"); }

constexpr size_t kLogShares = 4;  // of the log's files each instance takes one in so many

class EveryLogByteTest : public EveryByteTest, public ::testing::WithParamInterface<size_t> {
 protected:
  void TearDown() override {
    EveryByteTest::TearDown();
    RecordProperty("refused", static_cast<int>(refused_));
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    size_t index = 0;
    for (const auto& [path, bytes] : Killed().files) {
      if (path.ends_with(".log") && index++ % kLogShares == GetParam()) paths.push_back(path);
    }
    return paths;
  }
  // Returns whether the store opened.
  bool ExpectWholeOrRefused(const std::string& path, const Reading& reading, bool found) {
    if (reading.opened.ok()) {
      EXPECT_TRUE(reading.scanned && reading.failed_keys == 0) << "harmless, or refused";
      return true;
    }
    ExpectRefusal(reading, path);
    EXPECT_TRUE(found);
    ++refused_;
    return false;
  }
  // The file holds operations that are only there.
  static bool IsNeeded(const std::string& path) {
    return Killed().files.at(path).find("the last one") != std::string::npos;
  }

  uint64_t refused_ = 0;
};

// The mark behind the last group was not written in the last quarter of a small log file, so damage
// to that group passed for a torn end as long as nothing followed.
//
// Acknowledged blocks keep the store from opening, and so does the header of their file; what
// nobody needs harms nothing: what is in segments, the space between blocks, the zeros behind the
// last one, and the log file that the log has prepared ahead.
TEST_P(EveryLogByteTest, WhatNobodyElseHoldsKeepsTheStoreFromOpening) {
  for (const std::string& path : Paths()) {
    const std::string& whole = Killed().files.at(path);
    // Every byte of a block; of the zeros between blocks, and behind the last one, some.
    const auto wanted = [&](uint64_t offset) {
      return whole.find_first_not_of('\0', offset < 16 ? 0 : offset - 16) < offset + 16 ||
             offset % 61 == 0;
    };
    Flip(path, wanted, [&](uint64_t offset, const Reading& reading, bool found) {
      if (ExpectWholeOrRefused(path, reading, found)) {
        EXPECT_EQ(found, offset < kLogPageSize) << "the header's page is zero behind the header";
      }
    });
    if (IsNeeded(path)) {
      EXPECT_GT(refused_, 700 / DamageStep());
    }
  }
}

TEST_P(EveryLogByteTest, CutAtAnyLength) {
  for (const std::string& path : Paths()) {
    const std::string& whole = Killed().files.at(path);
    const uint64_t used = whole.find_last_not_of('\0') + 1;
    Cut(
        path,
        [&](uint64_t size) { return size < used || size % 97 == 0 || size + 1 == whole.size(); },
        [&](uint64_t, const Reading& reading, bool found) {
          ExpectWholeOrRefused(path, reading, found);
        });
    if (IsNeeded(path)) {
      EXPECT_GT(refused_, 40000 / DamageStep());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, EveryLogByteTest, ::testing::Range(size_t{0}, kLogShares));

// The last acknowledged group of a log that was closed is known to the manifest.
TEST_F(EveryByteTest, TheLogOfAStoreThatWasClosed) {
  const StoreImage image = MakeStoreImage(/*clean=*/true);
  for (const auto& [path, whole] : image.files) {
    if (!path.ends_with(".log")) continue;
    Files files = image.files;
    for (uint64_t offset = 0; offset < whole.size();
         offset += whole[offset] != 0 ? DamageStep() : 53 * DamageStep()) {
      SCOPED_TRACE(path + " with a flip at " + std::to_string(offset));
      files.at(path)[offset] = static_cast<char>(whole[offset] ^ 8);
      const Reading reading = ReadDamagedStore(image, files, path, offset);
      if (reading.opened.ok()) {
        EXPECT_TRUE(reading.scanned && reading.failed_keys == 0);
      } else {
        ExpectRefusal(reading, path);
        EXPECT_TRUE(VerifyFinds(files, path));
      }
      files.at(path)[offset] = whole[offset];
      ++tried_;
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(EveryByteTest, TheValueFile) {
  int files = 0;
  for (const auto& [path, whole] : Killed().files) {
    if (!path.ends_with(".val")) continue;
    ++files;
    const auto expect = [&](uint64_t, const Reading& reading, bool found) {
      ASSERT_TRUE(reading.opened.ok()) << reading.opened;
      EXPECT_LE(reading.failed_keys, 1u);
      EXPECT_TRUE(found);
    };
    Flip(path, All, expect);
    Cut(path, All, expect);
  }
  EXPECT_EQ(files, 1);
}

class FormerLogTest : public EveryByteTest {
 protected:
  const StoreImage& image() const override {
    static const StoreImage dense = MakeDenseStoreImage();
    return dense;
  }
  // The file is large, and one place in it is like the other.
  uint64_t step() const override { return 23 * DamageStep(); }
};

TEST_F(FormerLogTest, OneKeyIsLostByAFlipAndVerifyFindsIt) {
  int files = 0;
  for (const auto& [path, whole] : image().files) {
    if (!path.ends_with(".val")) continue;
    ++files;
    ASSERT_TRUE(whole.starts_with("VARVELOG"));
    uint64_t failed = 0;
    const auto expect = [&](uint64_t, const Reading& reading, bool found) {
      ASSERT_TRUE(reading.opened.ok()) << reading.opened;
      EXPECT_TRUE(found || reading.failed_keys == 0);
      failed += reading.failed_keys;
    };
    Flip(path, All, expect);
    EXPECT_LE(failed, tried_);
    EXPECT_GT(failed, tried_ / 2);
    Cut(path, All, expect);
  }
  EXPECT_EQ(files, 1);
}

class EverySegmentByteTest : public EveryByteTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    int index = 0;
    for (const auto& [path, bytes] : Killed().files) {
      if (path.ends_with(".seg") && index++ == GetParam()) path_ = path;
    }
    footer_ = FooterOf(Killed().files, path_);
  }
  // How many keys may be unreadable by get when the byte is damaged.
  size_t MostKeys(uint64_t offset) const {
    if (offset < footer_.data_size) return 1;
    if (offset < footer_.table_offset) return 0;
    if (offset >= footer_.fences_offset && offset < footer_.range_tombstones_offset) return 0;
    return Killed().probes.size();  // those between the smallest and the largest key of the segment
  }

  std::string path_;
  SegmentFooter footer_;
};

// A flip in a footer or in range tombstones kept the whole store from opening.
TEST_P(EverySegmentByteTest, OnlyWhatIsDamagedIsUnreadable) {
  uint64_t broken_scans = 0;  // those that skip a deleted range don't meet the damage in it
  Flip(path_, All, [&](uint64_t offset, const Reading& reading, bool found) {
    ASSERT_TRUE(reading.opened.ok()) << reading.opened;
    EXPECT_LE(reading.failed_keys, MostKeys(offset));
    EXPECT_TRUE(found);
    if (offset < footer_.data_size) broken_scans += !reading.scanned;
    for (const std::string& key : reading.failed) {
      EXPECT_TRUE(key >= footer_.info.smallest.substr(4) && key <= footer_.info.largest.substr(4))
          << key;
    }
  });
  EXPECT_GE(broken_scans, footer_.data_size / DamageStep() * 3 / 5);
}

TEST_P(EverySegmentByteTest, CutAtAnyLength) {
  Cut(path_, All, [&](uint64_t, const Reading& reading, bool found) {
    ASSERT_TRUE(reading.opened.ok()) << reading.opened;
    EXPECT_TRUE(found);
    for (const std::string& key : reading.failed) {
      EXPECT_TRUE(key >= footer_.info.smallest.substr(4) && key <= footer_.info.largest.substr(4))
          << key;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Segments, EverySegmentByteTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace varve
