#include "db/format/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kSuffix = ".log";
constexpr std::string_view kTemporarySuffix = ".log.tmp";

constexpr uint32_t kVersionWithoutSize = 1;

std::optional<uint64_t> ParseNumberedName(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - suffix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() < 6 || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

uint32_t HeaderChecksum(const char* page) {
  std::string covered(page, 12);
  covered.append(page + 16, DecodeFixed32(page + 8) == kVersionWithoutSize ? 16 : 24);
  return Checksum(covered, 0);
}

uint64_t BlockSeed(uint64_t store_id, uint64_t offset) {
  return store_id ^ (offset * 0x9E3779B97F4A7C15u);
}

}  // namespace

std::string LogFileName(uint64_t number) { return fmt::format("{:06}{}", number, kSuffix); }
std::string LogTemporaryName(uint64_t number) {
  return fmt::format("{:06}{}", number, kTemporarySuffix);
}
std::optional<uint64_t> ParseLogFileName(std::string_view name) {
  return ParseNumberedName(name, kSuffix);
}
std::optional<uint64_t> ParseLogTemporaryName(std::string_view name) {
  return ParseNumberedName(name, kTemporarySuffix);
}

std::string EncodeLogHeaderPage(uint64_t number, uint64_t store_id, uint64_t file_size,
                                uint32_t version) {
  std::string page(kLogPageSize, '\0');
  std::memcpy(page.data(), kLogMagic, sizeof(kLogMagic));
  EncodeFixed32(page.data() + 8, version);
  EncodeFixed64(page.data() + 16, number);
  EncodeFixed64(page.data() + 24, store_id);
  EncodeFixed64(page.data() + 32, file_size);
  EncodeFixed32(page.data() + 12, HeaderChecksum(page.data()));
  return page;
}

absl::Status CheckLogHeaderPage(std::string_view page, const std::string& path, uint64_t number,
                                uint64_t store_id) {
  if (page.size() < kLogHeaderSize ||
      std::all_of(page.begin(), page.end(), [](char c) { return c == 0; })) {
    return absl::NotFoundError(fmt::format("{}: a log file that was never begun", path));
  }
  if (std::memcmp(page.data(), kLogMagic, sizeof(kLogMagic)) != 0) {
    return Corruption(path, 0, "log header: does not begin with VARVELOG");
  }
  if (const uint32_t stored = DecodeFixed32(page.data() + 12), given = HeaderChecksum(page.data());
      stored != given) {
    return Corruption(
        path, 0,
        fmt::format("log header: checksum {:08x}, but its bytes give {:08x}", stored, given));
  }
  if (const uint32_t version = DecodeFixed32(page.data() + 8);
      version < kVersionWithoutSize || version > kLogFormatVersion) {
    return absl::FailedPreconditionError(
        fmt::format("{}: log format version {}, but this program reads versions up to {}; open it "
                    "with the program that wrote it",
                    path, version, kLogFormatVersion));
  }
  if (const uint64_t store = DecodeFixed64(page.data() + 24); store != store_id) {
    return absl::FailedPreconditionError(
        fmt::format("{}: belongs to store {:016x}, not to {:016x}; move it out of this directory",
                    path, store, store_id));
  }
  if (const uint64_t epoch = DecodeFixed64(page.data() + 16); epoch != number) {
    return Corruption(path, 16, fmt::format("log header: says that it is file {}", epoch));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> StoreIdOfLogHeaderPage(std::string_view page) {
  const bool is_good = page.size() >= kLogHeaderSize &&
                       std::memcmp(page.data(), kLogMagic, sizeof(kLogMagic)) == 0 &&
                       DecodeFixed32(page.data() + 12) == HeaderChecksum(page.data());
  if (!is_good) return std::nullopt;
  return DecodeFixed64(page.data() + 24);
}

uint64_t PreparedLogSize(std::string_view page) {
  return DecodeFixed32(page.data() + 8) == kVersionWithoutSize ? 0
                                                               : DecodeFixed64(page.data() + 32);
}

void EncodeLogBlockHeader(char* destination, const LogBlockHeader& header, uint64_t store_id,
                          uint64_t offset) {
  EncodeFixed32(destination + 4, header.payload_size);
  EncodeFixed64(destination + 8, header.epoch);
  EncodeFixed64(destination + 16, header.first);
  EncodeFixed64(destination + 24, header.last);
  EncodeFixed64(destination + 32, header.durable_mark);
  EncodeFixed32(destination,
                LogBlockChecksum({destination, kLogBlockHeaderSize}, store_id, offset));
}

uint32_t LogBlockChecksum(std::string_view header, uint64_t store_id, uint64_t offset) {
  return Checksum(header.substr(4), BlockSeed(store_id, offset));
}

std::optional<LogBlockHeader> DecodeHeaderOfEpoch(std::string_view bytes, uint64_t epoch,
                                                  uint64_t store_id, uint64_t offset) {
  if (DecodeFixed32(bytes.data()) !=
      LogBlockChecksum(bytes.substr(0, kLogBlockHeaderSize), store_id, offset)) {
    return std::nullopt;
  }
  LogBlockHeader header;
  header.payload_size = DecodeFixed32(bytes.data() + 4);
  header.epoch = epoch;
  header.first = DecodeFixed64(bytes.data() + 16);
  header.last = DecodeFixed64(bytes.data() + 24);
  header.durable_mark = DecodeFixed64(bytes.data() + 32);
  return header;
}

}  // namespace varve
