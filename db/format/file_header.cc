#include "db/format/file_header.h"

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kVersionOffset = 8;
constexpr size_t kChecksumOffset = 12;
constexpr size_t kNumberOffset = 16;

uint32_t HeaderChecksum(std::string_view bytes) {
  std::string covered(bytes.substr(0, kChecksumOffset));
  covered += bytes.substr(kNumberOffset, kFileHeaderSize - kNumberOffset);
  return Checksum(covered, 0);
}

}  // namespace

std::string EncodeFileHeader(const FileKind& kind, uint64_t number) {
  VARVE_ASSERT(kind.magic.size() == kVersionOffset);
  std::string header(kind.magic);
  PutFixed32(&header, kind.version);
  PutFixed32(&header, 0);  // the checksum follows
  PutFixed64(&header, number);
  EncodeFixed32(header.data() + kChecksumOffset, HeaderChecksum(header));
  return header;
}

absl::Status CheckFileHeader(const FileKind& kind, std::string_view bytes, const std::string& path,
                             uint64_t number) {
  if (bytes.size() < kFileHeaderSize) {
    return Corruption(path, bytes.size(),
                      fmt::format("{} header: the file ends within it", kind.name));
  }
  if (!bytes.starts_with(kind.magic)) {
    return Corruption(path, 0,
                      fmt::format("{} header: does not begin with {}", kind.name, kind.magic));
  }
  if (DecodeFixed32(bytes.data() + kChecksumOffset) != HeaderChecksum(bytes))
    return Corruption(path, 0, fmt::format("{} header: wrong checksum", kind.name));
  if (const uint32_t version = DecodeFixed32(bytes.data() + kVersionOffset);
      version != kind.version) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {} format version {}, but this program reads version {}; use the version "
                    "of Varve that wrote it",
                    path, kind.name, version, kind.version));
  }
  if (const uint64_t named = DecodeFixed64(bytes.data() + kNumberOffset); named != number) {
    return Corruption(path, kNumberOffset,
                      fmt::format("{} header: says that it is file {}", kind.name, named));
  }
  return absl::OkStatus();
}

}  // namespace varve
