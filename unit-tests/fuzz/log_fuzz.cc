// Log files and their recovery: whatever lies there, batches come in order without a gap,
// recovering once more gives the same, and so does recovering after the manifest has learnt where
// the files end, which is what the engine does next.
//
//   input = [ flushed: 1 ][ count of files less 1: 1, modulo 3 ] files
//   file  = [ header: 1, modulo 4; 0: as it should be, 1: zeros, 2: its fields follow (32 bytes),
//         3: damaged ]
//           [ known end: 1; bit 0: there is one ][ its offset / 8: 2 ][ its last sequence: 1 ]
//           blocks, each with a byte of how_* other than 0 before it; 0 ends them
//           [ count of damages: 1, modulo 8 ] each [ offset: 2 ][ byte to be XORed: 1 ]
//           [ bytes cut off the end: 2 ]
//   block = [ first sequence: 1 ][ durable mark: 1 ][ count of batches: 1, modulo 4 ] each [
//   operations: 1 ][ piece ] or, with kRawBlock: a piece with header and batches as they are on
//   disk, of which only the checksums are made right
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/log/log.h"
#include "db/log/log_recovery.h"
#include "tools/dump.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/memory_file_system.h"
#include "util/base/coding.h"

namespace varve::fuzz {
namespace {

using testing::MemoryFileSystem;

constexpr uint64_t kStore = 0x5EED;
constexpr std::string_view kDirectory = "log";

enum How : uint8_t {
  kBlock = 1,
  kOnNewPage = 2,
  kWrongBlockChecksum = 4,
  kWrongBatchChecksum = 8,
  kRawBlock = 16,
};

std::string Batch(SequenceNumber first, uint32_t count, std::string_view operations) {
  std::string batch(kBatchHeaderSize, '\0');
  batch += operations;
  SealBatch(first, count, HashOperations(operations), &batch);
  return batch;
}

class FileBuilder {
 public:
  explicit FileBuilder(uint64_t number)
      : number_(number), bytes_(EncodeLogHeaderPage(number, kStore)) {}

  void Header(Input* input) {
    const uint8_t how = input->Byte() % 4;
    if (how == 1) bytes_.assign(kLogPageSize, '\0');
    if (how == 2) {
      const std::string_view fields = input->Take(32);
      std::string page =
          EncodeLogHeaderPage(fields.size() < 32 ? number_ : DecodeFixed64(fields.data() + 16),
                              fields.size() < 32 ? kStore : DecodeFixed64(fields.data() + 24));
      bytes_ = std::move(page);
    }
    if (how == 3) bytes_[input->Byte() % 32] ^= 1;
  }

  void Block(uint8_t how, Input* input) {
    bytes_.resize((how & kOnNewPage) != 0 ? LogPageAlign(bytes_.size())
                                          : LogBlockAlign(bytes_.size()));
    const size_t offset = bytes_.size();
    LogBlockHeader header;
    std::string payload;
    if ((how & kRawBlock) != 0) {
      std::string raw(input->Piece());
      raw.resize(std::max(raw.size(), kLogBlockHeaderSize));
      header.payload_size = DecodeFixed32(raw.data() + 4);
      header.epoch = DecodeFixed64(raw.data() + 8);
      header.first = DecodeFixed64(raw.data() + 16);
      header.last = DecodeFixed64(raw.data() + 24);
      header.durable_mark = DecodeFixed64(raw.data() + 32);
      payload = raw.substr(kLogBlockHeaderSize);
      SealBatches(&payload);
    } else {
      header.epoch = number_;
      header.first = input->Byte();
      header.durable_mark = input->Byte();
      SequenceNumber next = header.first;
      for (int batches = input->Byte() % 4; batches > 0; --batches) {
        const uint8_t count = input->Byte();
        payload += Batch(next, count, input->Piece());
        next += count;
      }
      header.last = next - 1;
      header.payload_size = static_cast<uint32_t>(payload.size());
    }
    if ((how & kWrongBatchChecksum) != 0 && !payload.empty()) payload[0] ^= 1;
    char encoded[kLogBlockHeaderSize];
    EncodeLogBlockHeader(encoded, header, kStore, offset);
    if ((how & kWrongBlockChecksum) != 0) encoded[0] ^= 1;
    bytes_.append(encoded, sizeof(encoded)).append(payload);
  }

  void Damage(Input* input) {
    for (int damages = input->Byte() % 8; damages > 0; --damages) {
      const size_t offset = input->Short() % bytes_.size();
      bytes_[offset] = static_cast<char>(bytes_[offset] ^ input->Byte());
    }
    bytes_.resize(bytes_.size() - std::min<size_t>(input->Short(), bytes_.size()));
  }

  std::string Take() { return std::move(bytes_); }

 private:
  static void SealBatches(std::string* payload) {
    for (size_t at = 0; at + kBatchHeaderSize <= payload->size();) {
      const size_t size = DecodeFixed32(payload->data() + at + 4);
      if (size > payload->size() - at - kBatchHeaderSize) break;
      std::string batch = payload->substr(at, kBatchHeaderSize + size);
      SealBatch(DecodeFixed64(batch.data() + 8), DecodeFixed32(batch.data() + 16),
                HashOperations(std::string_view(batch).substr(kBatchHeaderSize)), &batch);
      payload->replace(at, batch.size(), batch);
      at += batch.size();
    }
  }

  const uint64_t number_;
  std::string bytes_;
};

struct Recovered {
  absl::Status status;
  LogRecovery recovery;
  std::vector<std::pair<SequenceNumber, std::string>> batches;
};

Recovered Recover(MemoryFileSystem* files, SequenceNumber flushed,
                  const std::vector<LogEnd>& known_ends) {
  Recovered recovered;
  SequenceNumber next = 0;
  auto result = RecoverLog(files, std::string(kDirectory), kStore, flushed, known_ends,
                           [&](std::string_view operations, SequenceNumber first, uint32_t count) {
                             VARVE_FUZZ_REQUIRE(count > 0);
                             VARVE_FUZZ_REQUIRE(next == 0 ? first <= flushed + 1 : first == next);
                             next = first + count;
                             VARVE_FUZZ_REQUIRE(next > first && next > flushed);
                             recovered.batches.emplace_back(first, operations);
                             return absl::OkStatus();
                           });
  recovered.status = result.status();
  if (!result.ok()) return recovered;
  recovered.recovery = *std::move(result);
  VARVE_FUZZ_REQUIRE(recovered.recovery.last_sequence == (next == 0 ? flushed : next - 1));
  return recovered;
}

void Run(std::string_view bytes) {
  Input input(bytes);
  const SequenceNumber flushed = input.Byte();
  MemoryFileSystem::Files written;
  std::vector<LogEnd> known_ends;
  const uint64_t count = 1 + input.Byte() % 3;
  for (uint64_t number = 1; number <= count; ++number) {
    FileBuilder file(number);
    file.Header(&input);
    const bool known = (input.Byte() & 1) != 0;
    const uint64_t offset = uint64_t{input.Short()} * 8;
    const LogEnd end = {number, offset, input.Byte()};
    if (known) known_ends.push_back(end);
    while (const uint8_t how = input.Byte()) file.Block(how, &input);
    file.Damage(&input);
    written[std::string(kDirectory) + "/" + LogFileName(number)] = file.Take();
  }
  MemoryFileSystem files(written);
  (void)DumpLog(&files, std::string(kDirectory), [](std::string_view) {}).ok();

  const Recovered first = Recover(&files, flushed, known_ends);
  if (!first.status.ok()) {
    VARVE_FUZZ_REQUIRE(absl::IsDataLoss(first.status) || absl::IsFailedPrecondition(first.status));
    return;
  }
  const Recovered again = Recover(&files, flushed, known_ends);
  VARVE_FUZZ_REQUIRE(again.status.ok() && again.batches == first.batches);

  for (const std::string& path : first.recovery.obsolete_paths)
    VARVE_FUZZ_REQUIRE(files.Remove(path).ok());
  const Recovered later = Recover(&files, flushed, first.recovery.files);
  VARVE_FUZZ_REQUIRE(later.status.ok() && later.batches == first.batches);
  VARVE_FUZZ_REQUIRE(later.recovery.last_sequence == first.recovery.last_sequence);
  const Recovered flushed_all = Recover(&files, first.recovery.last_sequence, first.recovery.files);
  VARVE_FUZZ_REQUIRE(flushed_all.status.ok() && flushed_all.batches.empty());
}

// --- Seeds, in the grammar above -----------------------------------------------------------------

std::string Operation(std::string_view key) {
  const std::string tree_key = std::string(4, '\0') + std::string(key);
  std::string operation = {1, static_cast<char>(tree_key.size()), 1};
  return operation + tree_key + "v";
}

std::string SeedBlock(uint8_t how, uint8_t first, uint8_t mark, int batches) {
  std::string block = {static_cast<char>(how | kBlock), static_cast<char>(first),
                       static_cast<char>(mark), static_cast<char>(batches)};
  for (int i = 0; i < batches; ++i) {
    block.push_back(1);
    AppendPiece(Operation("key"), &block);
  }
  return block;
}

std::string SeedFile(const std::string& blocks,
                     const std::string& damages = std::string("\0\0\0", 3),
                     const std::string& known_end = std::string(4, '\0')) {
  return '\0' + known_end + blocks + '\0' + damages;
}

std::vector<std::string> Seeds() {
  const std::string two = SeedBlock(0, 1, 0, 2) + SeedBlock(kOnNewPage, 3, 2, 1);
  const std::string rest = SeedBlock(0, 4, 3, 1) + SeedBlock(kOnNewPage, 5, 4, 0);
  const std::string raw_header =
      std::string(4, '\0') +
      std::string("\x16\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 28) +
      std::string(8, '\0');
  std::string raw = {kBlock | kRawBlock};
  AppendPiece(
      raw_header + std::string(4, '\0') + std::string("\2\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0op", 18),
      &raw);
  const auto files = [](std::vector<std::string> each, char flushed = 0) {
    std::string input = {flushed, static_cast<char>(each.size() - 1)};
    for (const std::string& file : each) input += file;
    return input;
  };
  return {
      files({SeedFile(two)}),
      files({SeedFile(two), SeedFile(rest)}),
      files({SeedFile(two), SeedFile(rest), SeedFile(SeedBlock(0, 5, 4, 3))}, 2),
      files({SeedFile(two, std::string("\1\x50\x10\1\0\0", 6))}),
      files({SeedFile(two, std::string("\1\x10\x20\1\0\0", 6)), SeedFile(rest)}),
      files({SeedFile(two, std::string("\0\x10\0", 3))}),
      files({SeedFile(two, std::string("\0\0\0", 3), std::string("\1\x10\2\2", 4)),
             SeedFile(SeedBlock(0, 3, 2, 1))}),
      files({SeedFile(SeedBlock(kWrongBatchChecksum, 1, 0, 1) + SeedBlock(kOnNewPage, 2, 1, 1))}),
      files({SeedFile(SeedBlock(kWrongBlockChecksum, 1, 0, 1) + SeedBlock(kOnNewPage, 2, 0, 1))}),
      files({SeedFile(raw)}),
      files({'\1' + SeedFile("").substr(1), SeedFile(two)}),
      files({'\3' + std::string(1, '\5') + SeedFile(two).substr(1)})};
}

const Announced kTarget({"log", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
