#include "db/values/value_file_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "db/format/batch_codec.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

uint32_t HeaderChecksum(std::string_view page) {
  std::string covered(page.substr(0, 12));
  covered.append(page.substr(16, kValueFileHeaderSize - 16));
  return Checksum(covered, 0);
}

using Tell = absl::FunctionRef<void(const absl::Status& damage)>;

void SurveyOperations(std::string_view content, const std::string& path, Tell tell) {
  for (size_t offset = kValueFilePageSize; offset < content.size();) {
    const std::string_view rest = content.substr(offset);
    RecordView record;
    size_t size = DecodeLargeOperation(rest, &record);
    if (size == 0) {
      tell(Corruption(path, offset, "value: wrong checksum or size"));
      // The survey goes on behind the damaged operation if a good one begins where its header says
      // that it ends. Else it stops, and the checks of the segments find which of the values that
      // they use are damaged.
      const uint64_t claimed = LargeOperationSize(rest);
      if (claimed == 0 || claimed >= rest.size() ||
          DecodeLargeOperation(rest.substr(claimed), &record) == 0)
        return;
      size = claimed;
    }
    offset += size;
  }
}

void SurveyBlock(std::string_view payload, uint64_t offset, const std::string& path, Tell tell) {
  while (!payload.empty()) {
    BatchHeader header;
    std::string_view operations;
    const size_t size = DecodeBatch(payload, &header, &operations);
    if (size == 0) return tell(Corruption(path, offset, "log batch: wrong checksum or size"));
    payload.remove_prefix(size);
    offset += size;
  }
}

void SurveyBlocks(std::string_view content, uint64_t number, uint64_t store_id,
                  const std::string& path, Tell tell) {
  // Between the last good block and here is nothing but zeros.
  uint64_t looked_at = kLogPageSize;
  bool is_told = false;
  for (uint64_t offset = kLogPageSize; offset + kLogBlockHeaderSize <= content.size();) {
    const auto block = DecodeLogBlockHeader(content.substr(offset), number, store_id, offset);
    if (!block || block->payload_size > content.size() - offset - kLogBlockHeaderSize) {
      // The next block begins here or with the next page; bytes that are neither zero nor a block
      // are damaged.
      offset += kLogBlockAlignment;
      if (is_told) continue;
      const size_t bad = content.substr(looked_at, offset - looked_at).find_first_not_of('\0');
      if (bad != std::string_view::npos) {
        tell(Corruption(path, looked_at + bad, "log block: damaged"));
        is_told = true;
      }
      looked_at = offset;
      continue;
    }
    SurveyBlock(content.substr(offset + kLogBlockHeaderSize, block->payload_size),
                offset + kLogBlockHeaderSize, path, tell);
    offset = looked_at = LogBlockAlign(offset + kLogBlockHeaderSize + block->payload_size);
    is_told = false;
  }
}

}  // namespace

std::string EncodeValueFileHeader(uint64_t number) {
  std::string page(kValueFilePageSize, '\0');
  std::memcpy(page.data(), kValueFileMagic, sizeof(kValueFileMagic));
  EncodeFixed32(page.data() + 8, kValueFileVersion);
  EncodeFixed64(page.data() + 16, number);
  EncodeFixed32(page.data() + 12, HeaderChecksum(page));
  return page;
}

absl::Status CheckValueFileHeader(std::string_view page, const std::string& path, uint64_t number) {
  if (page.size() < kValueFilePageSize)
    return Corruption(path, page.size(), "value file: it ends within its header");
  if (std::memcmp(page.data(), kValueFileMagic, sizeof(kValueFileMagic)) != 0) {
    return Corruption(path, 0, "value file: does not begin with VARVEVAL");
  }
  if (DecodeFixed32(page.data() + 12) != HeaderChecksum(page)) {
    return Corruption(path, 0, "value file header: wrong checksum");
  }
  if (const uint32_t version = DecodeFixed32(page.data() + 8); version != kValueFileVersion) {
    return absl::FailedPreconditionError(
        fmt::format("{}: value file format version {} is not known to this program (it reads {})",
                    path, version, kValueFileVersion));
  }
  if (const uint64_t named = DecodeFixed64(page.data() + 16); named != number) {
    return Corruption(path, 16, fmt::format("value file header: says that it is file {}", named));
  }
  const size_t bad =
      page.substr(0, kValueFilePageSize).find_first_not_of('\0', kValueFileHeaderSize);
  if (bad != std::string_view::npos)
    return Corruption(path, bad, "value file header: not zero, which harms nothing");
  return absl::OkStatus();
}

absl::Status SurveyValueFile(const File& file, uint64_t number, uint64_t store_id, Tell tell) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::string content(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(0, size, content.data()));
  content.resize(read);
  const std::string_view page = std::string_view(content).substr(0, kValueFilePageSize);
  // The magic may be damaged: the file has the form whose magic is more like it.
  const auto likeness = [&](std::string_view magic) {
    size_t equal = 0;
    for (size_t i = 0; i < magic.size() && i < page.size(); ++i)
      equal += magic[i] == page[i] ? 1 : 0;
    return equal;
  };
  const bool is_of_log = likeness({kLogMagic, sizeof(kLogMagic)}) >
                         likeness({kValueFileMagic, sizeof(kValueFileMagic)});
  if (!is_of_log) {
    if (absl::Status header = CheckValueFileHeader(page, file.path(), number); !header.ok())
      tell(header);
    SurveyOperations(content, file.path(), tell);
    return absl::OkStatus();
  }
  const std::optional<uint64_t> writer = StoreIdOfLogHeaderPage(page);
  if (writer) store_id = *writer;
  if (absl::Status header = CheckLogHeaderPage(page, file.path(), number, store_id); !header.ok()) {
    tell(absl::IsNotFound(header)
             ? Corruption(file.path(), page.size(), "log header: the file ends within it")
             : header);
  } else if (const size_t bad = page.find_first_not_of('\0', kLogHeaderSize);
             bad != std::string_view::npos) {
    tell(Corruption(file.path(), bad, "log header: not zero, which harms nothing"));
  }
  SurveyBlocks(content, number, store_id, file.path(), tell);
  return absl::OkStatus();
}

}  // namespace varve
