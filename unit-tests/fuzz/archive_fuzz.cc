// The files of an archive: what is read of a change file is written anew and reads the same, and of
// the texts LAST and FIRST nothing is read but what is written.
//
//   input = [ what it is: 1; 0: a change file, 1: the commits of one, which get a right header and
//   checksum, 2: LAST, 3: FIRST ][ version of the last commit: 2 ][ number of commits: 1 ][ rest ]
#include <zstd.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/archive/archive_file.h"
#include "tools/archive/archive_first.h"
#include "tools/archive/archive_position.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "util/base/coding.h"
#include "util/base/hash.h"

namespace varve::fuzz {
namespace {

constexpr std::string_view kBase = "20261125T193300Z-1234";
constexpr uint64_t kInstant = 1000;

// A change file with these commits, as they are encoded.
std::string FileOf(std::string_view commits, uint64_t last, uint64_t count) {
  std::string packed(ZSTD_compressBound(commits.size()), '\0');
  packed.resize(
      ZSTD_compress(packed.data(), packed.size(), commits.data(), commits.size(), /*level=*/1));
  std::string bytes = "VARVEARC";
  PutFixed32(&bytes, 1);
  PutFixed32(&bytes, static_cast<uint32_t>(kBase.size()));
  for (const uint64_t figure :
       {uint64_t{7}, uint64_t{2}, uint64_t{0}, last, kInstant, kInstant, count, uint64_t{3},
        uint64_t{commits.size()}, uint64_t{packed.size()}})
    PutFixed64(&bytes, figure);
  bytes += kBase;
  bytes += packed;
  PutFixed64(&bytes, HashKey(bytes));
  return bytes;
}

void RequireDamage(const absl::Status& status) {
  VARVE_FUZZ_REQUIRE(absl::IsDataLoss(status) || absl::IsFailedPrecondition(status));
}

void RunFile(std::string_view bytes) {
  const absl::StatusOr<ArchiveFile> file = DecodeArchiveFile(bytes, "f");
  if (!file.ok()) return RequireDamage(file.status());
  const absl::StatusOr<std::string> written = EncodeArchiveFile(file->header, file->commits);
  VARVE_FUZZ_REQUIRE(written.ok());
  const absl::StatusOr<ArchiveFile> again = DecodeArchiveFile(*written, "f");
  VARVE_FUZZ_REQUIRE(again.ok() && again->header == file->header);
  VARVE_FUZZ_REQUIRE(*EncodeArchiveFile(again->header, again->commits) == *written);
}

void Run(std::string_view input) {
  Input parts(input);
  const uint8_t what = parts.Byte() % 4;
  const uint64_t last = parts.Short();
  const uint64_t count = parts.Byte();
  const std::string_view rest = parts.Rest();
  if (what == 0) return RunFile(rest);
  if (what == 1) return RunFile(FileOf(rest, last, count));
  if (what == 2) {
    const absl::StatusOr<ArchivePosition> position = DecodeArchivePosition(rest, "f");
    if (!position.ok()) return RequireDamage(position.status());
    VARVE_FUZZ_REQUIRE(EncodeArchivePosition(*position) == rest);
    return;
  }
  const absl::StatusOr<ArchiveFirst> first = DecodeArchiveFirst(rest, "f");
  if (!first.ok()) return RequireDamage(first.status());
  VARVE_FUZZ_REQUIRE(EncodeArchiveFirst(*first) == rest);
}

std::vector<std::string> Seeds() {
  std::vector<Change> commits;
  for (SequenceNumber version = 1; version <= 5; ++version) {
    Change& commit = commits.emplace_back();
    commit.version = version;
    commit.instant_ms = kInstant;
    ChangeOperation& set = commit.operations.emplace_back();
    set.name = "0";
    set.key = "key";
    set.value = std::string(version * 20, 'v');
    ChangeOperation& clone = commit.operations.emplace_back();
    clone.kind = ChangeOperation::Kind::kClone;
    clone.space = 65536;
    clone.name = "copy";
    clone.key = "source";
  }
  const std::string file =
      *EncodeArchiveFile({.number = 7, .predecessor = 3, .base = std::string(kBase)}, commits);
  const size_t begin = 96 + kBase.size();
  const std::string_view packed =
      std::string_view(file).substr(begin, file.size() - begin - sizeof(uint64_t));
  std::string raw(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  const ArchivePosition position{.history_id = 1, .base = std::string(kBase), .number = 7};
  const ArchiveFirst first{.number = 7, .gone = {std::string(kBase)}};
  const auto seed = [](char what, const std::string& rest) {
    return std::string({what, '\5', '\0', '\5'}) + rest;
  };
  return {seed('\0', file), seed('\1', raw), seed('\2', EncodeArchivePosition(position)),
          seed('\3', EncodeArchiveFirst(first))};
}

const Announced kTarget({"archive", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
