// What the tests of archives stand on: a store, and an archive that follows its change feed.
//
// Thread-safety: one thread at a time uses a fixture.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/archive/archive_chain.h"
#include "tools/archive/archive_place.h"
#include "tools/archive/archive_restore.h"
#include "unit-tests/tools/backup/backup_fixture.h"

namespace varve::testing {

class ArchiveTest : public BackupTest {
 protected:
  ArchiveTest() { options_.changes.bytes = 64 << 20; }

  std::string archive_path() const { return dir_.File("archive"); }
  std::string FilePath(uint64_t number) const {
    return archive_path() + "/changes/" + ArchiveFileName(number);
  }

  void OpenArchive() {
    place_.reset();
    auto opened = ArchivePlace::Open(PosixFileSystem(), archive_path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    place_ = *std::move(opened);
  }
  void TakeBase() {
    const BackupOrigin origin = Seal();
    const auto id = Copy(place_->bases(), sealed_path(), origin, /*incremental=*/true);
    ASSERT_TRUE(id.ok()) << id.status();
    const auto base = ReadBackupList(PosixFileSystem(), place_->bases()->PathOf(*id));
    ASSERT_TRUE(base.ok()) << base.status();
    ASSERT_EQ(place_->BeginChain(*base), absl::OkStatus());
  }
  // Returns the commits behind the version.
  std::vector<Change> ChangesBehind(SequenceNumber version) {
    ChangeFilter filter;
    filter.space.reset();
    auto changes = store_->NewChangeIterator(version, filter);
    EXPECT_TRUE(changes.ok()) << changes.status();
    std::vector<Change> commits;
    for (absl::StatusOr<bool> next = false; changes.ok();) {
      next = (*changes)->Next();
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok() || !*next) break;
      commits.push_back((*changes)->change());
    }
    return commits;
  }
  // Writes what came since to one change file, and remembers what the store holds.
  void Follow() {
    const std::vector<Change> commits = ChangesBehind(place_->position()->version);
    ASSERT_FALSE(commits.empty());
    ASSERT_EQ(place_->Append(commits), absl::OkStatus());
    Remember();
  }
  // Remembers what the store holds, under the version that it has.
  void Remember() {
    const std::vector<Change> commits = ChangesBehind(kNoSequence);
    const SequenceNumber version = commits.empty() ? kNoSequence : commits.back().version;
    model_[std::max(version, place_->position()->version)] = ContentsOf(store_.get());
  }

  absl::StatusOr<ArchiveRestoreReport> Restore(const ArchivePoint& point) {
    std::filesystem::remove_all(restored_path());
    return RestoreArchive(PosixFileSystem(), archive_path(), restored_path(), point, false,
                          nullptr);
  }
  std::string restored_path() const { return dir_.File("restored"); }

  ArchiveContents Check() {
    const auto contents = CheckArchive(PosixFileSystem(), archive_path(), nullptr);
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? *contents : ArchiveContents();
  }
  static std::vector<std::string> Damaged(const ArchiveContents& contents) {
    std::vector<std::string> names;
    for (const StoreFinding& finding : contents.findings)
      if (finding.kind == StoreFinding::Kind::kDamage) names.push_back(finding.file);
    return names;
  }

  std::unique_ptr<ArchivePlace> place_;
  std::map<SequenceNumber, Spaces> model_;  // by version
};

}  // namespace varve::testing
