// Change files: what is read ascends, and written anew it reads the same.
//
//   input = [ how: 1; bit 0: the rest is the whole file, else the payload of one block, which gets
//   right checksums ][ size of the dictionary: 2 ][ number of commits: 1 ][ rest ]
#include <string>
#include <string_view>
#include <vector>

#include "db/changes/change_file.h"
#include "db/format/file_names.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/memory_file_system.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve::fuzz {
namespace {

constexpr uint64_t kNumber = 7;
constexpr uint64_t kOffset = kChangeFileHeaderSize;

std::string EmptyFile() {
  testing::MemoryFileSystem files;
  ChangeFile file(&files, "d", kNumber, nullptr);
  VARVE_FUZZ_REQUIRE(file.OpenForWriting(0).ok());
  return files.files().at(ChangeFilePath("d", kNumber));
}

// A file of one block with the payload.
std::string FileOf(std::string_view payload, uint32_t dictionary_size, uint32_t count) {
  std::string block(8, '\0');
  PutFixed32(&block, static_cast<uint32_t>(payload.size()));
  PutFixed32(&block, dictionary_size);
  for (const uint64_t number : {uint64_t{10}, uint64_t{1} << 40, uint64_t{1000}, uint64_t{1} << 50})
    PutFixed64(&block, number);
  PutFixed32(&block, 0);
  PutFixed32(&block, count);
  const uint64_t seed = kNumber ^ kOffset;
  EncodeFixed32(block.data() + 4, Checksum(payload, seed));
  EncodeFixed32(block.data(), Checksum(std::string_view(block).substr(4), seed));
  return EmptyFile() + block + std::string(payload);
}

void Run(std::string_view input) {
  Input parts(input);
  const bool whole = (parts.Byte() & 1) != 0;
  const uint32_t dictionary_size = parts.Short();
  const uint32_t count = parts.Byte();
  const std::string_view rest = parts.Rest();
  const std::string bytes = whole ? std::string(rest) : FileOf(rest, dictionary_size, count);
  testing::MemoryFileSystem::Files given;
  given[ChangeFilePath("d", kNumber)] = bytes;
  testing::MemoryFileSystem files(given);
  ChangeFile file(&files, "d", kNumber, nullptr);
  SequenceNumber last = kNoSequence;
  for (uint64_t offset = kOffset; offset < bytes.size();) {
    ChangeBlock block;
    const absl::StatusOr<uint64_t> next = file.ReadBlock(offset, bytes.size(), &block);
    if (!next.ok()) {
      VARVE_FUZZ_REQUIRE(absl::IsDataLoss(next.status()) ||
                         absl::IsFailedPrecondition(next.status()));
      return;
    }
    ChangeBlock again{.after = block.after, .last = block.after};
    again.dictionary = block.dictionary;
    last = block.after;
    for (size_t at = 0; at < block.commits.size();) {
      ChangeCommit commit;
      VARVE_FUZZ_REQUIRE(ReadCommit(block, &at, &commit) && commit.last > last);
      last = commit.last;
      std::string operations;
      for (size_t operation = 0; operation < commit.operations.size();) {
        ChangeRecord record;
        VARVE_FUZZ_REQUIRE(ReadChangeRecord(commit, &operation, &record));
        VARVE_FUZZ_REQUIRE(record.space < block.dictionary.size() && record.version <= last);
        AppendChangeRecord(record, commit.last, &operations);
      }
      if (!operations.empty()) AddCommit({commit.last, commit.instant_ms, operations}, &again);
    }
    again.last = block.last;
    const std::string written = EncodeChangeBlock(again, kNumber, offset);
    const auto header = DecodeChangeBlockHeader(written, "f", kNumber, offset);
    VARVE_FUZZ_REQUIRE(header.ok());
    ChangeBlock read;
    VARVE_FUZZ_REQUIRE(DecodeChangeBlock(*header, written,
                                         std::string_view(written).substr(kChangeBlockHeaderSize),
                                         "f", kNumber, offset, &read)
                           .ok());
    VARVE_FUZZ_REQUIRE(read.commits == again.commits && read.dictionary == again.dictionary);
    offset = *next;
  }
}

std::vector<std::string> Seeds() {
  ChangeBlock block{.after = 10, .last = 10};
  block.dictionary = {{0, "0"}, {16, "name"}};
  for (uint64_t i = 1; i <= 5; ++i) {
    std::string operations;
    AppendChangeRecord({.version = 10 + i * 2 - 1, .key = "key", .value = "value", .expiry_ms = i},
                       10 + i * 2, &operations);
    AppendChangeRecord({.kind = ChangeOperation::Kind::kMeta,
                        .space = 1,
                        .version = 10 + i * 2,
                        .key = "k",
                        .metadata = "m"},
                       10 + i * 2, &operations);
    AddCommit({10 + i * 2, 1000 + i, operations}, &block);
  }
  const std::string encoded = EncodeChangeBlock(block, kNumber, kOffset);
  const std::string payload = encoded.substr(kChangeBlockHeaderSize);
  const char sizes[] = {'\0', static_cast<char>(payload.size() - block.commits.size()), '\0', 5};
  return {std::string(sizes, sizeof(sizes)) + payload,
          std::string("\1\0\0\0", 4) + EmptyFile() + encoded};
}

const Announced kTarget({"change_file", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
