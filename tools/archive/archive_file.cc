#include "tools/archive/archive_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <memory>
#include <utility>

#include "tools/backup/backup_list.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kMagic = "VARVEARC";
constexpr uint32_t kFormat = 1;
constexpr size_t kFixedSize = 96;
constexpr size_t kChecksumSize = 8;
constexpr size_t kLongestId = 128;
constexpr size_t kDigits = 10;  // of a number in a name, at least
constexpr std::string_view kSuffix = ".arc";
constexpr int kLevel = 3;  // of zstd
// A commit has at most 1 GiB, and a file ends with the commit that makes it large.
constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr auto kLastKind = static_cast<uint8_t>(ChangeOperation::Kind::kMeta);

// What the fixed part of a header says of sizes.
struct Sizes {
  uint32_t id = 0;
  uint64_t commits = 0;
  uint64_t packed = 0;

  uint64_t OfFile() const { return kFixedSize + id + packed + kChecksumSize; }
};

void AppendCommit(const Change& commit, SequenceNumber before, std::string* out) {
  PutVarint64(out, commit.version - before);
  PutVarint64(out, commit.instant_ms);
  PutVarint64(out, commit.operations.size());
  for (const ChangeOperation& operation : commit.operations) {
    out->push_back(static_cast<char>(operation.kind));
    PutVarint32(out, operation.space);
    PutLengthPrefixed(out, operation.name);
    PutLengthPrefixed(out, operation.key);
    PutLengthPrefixed(out, operation.value);
    PutLengthPrefixed(out, operation.metadata);
    PutVarint64(out, operation.expiry_ms);
  }
}

bool ReadText(ByteReader* reader, std::string* text) {
  std::string_view bytes;
  if (!reader->ReadLengthPrefixed(&bytes)) return false;
  text->assign(bytes);
  return true;
}

bool ReadOperation(ByteReader* reader, ChangeOperation* operation) {
  uint8_t kind = 0;
  if (!reader->ReadByte(&kind) || kind > kLastKind) return false;
  operation->kind = static_cast<ChangeOperation::Kind>(kind);
  return reader->ReadVarint32(&operation->space) && ReadText(reader, &operation->name) &&
         ReadText(reader, &operation->key) && ReadText(reader, &operation->value) &&
         ReadText(reader, &operation->metadata) && reader->ReadVarint64(&operation->expiry_ms);
}

bool ReadCommit(ByteReader* reader, SequenceNumber before, Change* commit) {
  uint64_t distance = 0, count = 0;
  if (!reader->ReadVarint64(&distance) || !reader->ReadVarint64(&commit->instant_ms) ||
      !reader->ReadVarint64(&count) || distance == 0 || distance > kMaxSequence - before ||
      count > reader->rest().size())
    return false;
  commit->version = before + distance;
  commit->operations.resize(count);
  for (ChangeOperation& operation : commit->operations)
    if (!ReadOperation(reader, &operation)) return false;
  return true;
}

// Reads what stands before the base's id.
absl::Status ReadFixed(std::string_view bytes, const std::string& path, ArchiveFileHeader* header,
                       Sizes* sizes) {
  if (bytes.size() < kFixedSize) return Corruption(path, bytes.size(), "the header is cut off");
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return Corruption(path, 0, "it does not begin as a change file does");
  const uint32_t format = DecodeFixed32(&bytes[8]);
  if (format > kFormat) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: it has format {}, which a later version of Varve writes; this one reads up to {}",
        path, format, kFormat));
  }
  if (format != kFormat) return Corruption(path, 8, "there is no such format");
  sizes->id = DecodeFixed32(&bytes[12]);
  header->number = DecodeFixed64(&bytes[16]);
  header->history_id = DecodeFixed64(&bytes[24]);
  header->after = DecodeFixed64(&bytes[32]);
  header->last = DecodeFixed64(&bytes[40]);
  header->first_instant_ms = DecodeFixed64(&bytes[48]);
  header->last_instant_ms = DecodeFixed64(&bytes[56]);
  header->commits = DecodeFixed64(&bytes[64]);
  header->predecessor = DecodeFixed64(&bytes[72]);
  sizes->commits = DecodeFixed64(&bytes[80]);
  sizes->packed = DecodeFixed64(&bytes[88]);
  if (sizes->id > kLongestId || sizes->commits > kMostBytes || sizes->packed > kMostBytes)
    return Corruption(path, 12, "the sizes in the header make no sense");
  if (header->after >= header->last || header->last > kMaxSequence || header->commits == 0)
    return Corruption(path, 32, "the versions in the header make no sense");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Unpack(std::string_view packed, uint64_t size, const std::string& path,
                                   uint64_t offset) {
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size)
    return Corruption(path, offset, "the compressed commits have another size than the header");
  std::string commits(size, '\0');
  const size_t unpacked =
      ZSTD_decompress(commits.data(), commits.size(), packed.data(), packed.size());
  if (ZSTD_isError(unpacked) != 0 || unpacked != size)
    return Corruption(path, offset, "the compressed commits can't be unpacked");
  return commits;
}

// Returns whether the commits are those that the header tells of.
bool ReadCommits(std::string_view bytes, ArchiveFile* file) {
  const ArchiveFileHeader& header = file->header;
  if (header.commits > bytes.size()) return false;
  ByteReader reader(bytes);
  SequenceNumber before = header.after;
  file->commits.resize(header.commits);
  for (Change& commit : file->commits) {
    if (!ReadCommit(&reader, before, &commit)) return false;
    before = commit.version;
  }
  return reader.empty() && before == header.last &&
         file->commits.front().instant_ms == header.first_instant_ms &&
         file->commits.back().instant_ms == header.last_instant_ms;
}

}  // namespace

std::string ArchiveFileName(uint64_t number) { return fmt::format("{:010}{}", number, kSuffix); }

std::optional<uint64_t> ParseArchiveFileName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  if (digits.size() < kDigits || digits.size() > 19) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  if (number == 0 || ArchiveFileName(number) != name) return std::nullopt;
  return number;
}

absl::StatusOr<std::string> EncodeArchiveFile(const ArchiveFileHeader& header,
                                              absl::Span<const Change> commits) {
  VARVE_ASSERT(!commits.empty() && header.base.size() <= kLongestId);
  std::string raw;
  SequenceNumber before = header.after;
  for (const Change& commit : commits) {
    if (commit.version <= before) {
      return absl::InvalidArgumentError(fmt::format(
          "version {} came behind version {}: the commits do not ascend", commit.version, before));
    }
    AppendCommit(commit, before, &raw);
    before = commit.version;
  }
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kLevel);
  if (ZSTD_isError(size) != 0) {
    return absl::ResourceExhaustedError(
        fmt::format("the commits can't be compressed: {}", ZSTD_getErrorName(size)));
  }
  packed.resize(size);
  std::string bytes(kMagic);
  PutFixed32(&bytes, kFormat);
  PutFixed32(&bytes, static_cast<uint32_t>(header.base.size()));
  for (const uint64_t figure :
       {header.number, header.history_id, header.after, commits.back().version,
        commits.front().instant_ms, commits.back().instant_ms, uint64_t{commits.size()},
        header.predecessor, uint64_t{raw.size()}, uint64_t{packed.size()}})
    PutFixed64(&bytes, figure);
  VARVE_ASSERT(bytes.size() == kFixedSize);
  bytes += header.base;
  bytes += packed;
  PutFixed64(&bytes, HashKey(bytes));
  return bytes;
}

absl::StatusOr<ArchiveFile> DecodeArchiveFile(std::string_view bytes, const std::string& path) {
  ArchiveFile file;
  VARVE_RETURN_IF_ERROR(DecodeArchiveFile(bytes, path, &file));
  return file;
}

absl::Status DecodeArchiveFile(std::string_view bytes, const std::string& path, ArchiveFile* file) {
  Sizes sizes;
  VARVE_RETURN_IF_ERROR(ReadFixed(bytes, path, &file->header, &sizes));
  if (bytes.size() != sizes.OfFile()) {
    return Corruption(path, bytes.size(),
                      fmt::format("the file has {} bytes, and {} according to its header",
                                  bytes.size(), sizes.OfFile()));
  }
  const std::string_view content = bytes.substr(0, bytes.size() - kChecksumSize);
  if (HashKey(content) != DecodeFixed64(&bytes[content.size()]))
    return Corruption(path, 0, "the checksum of the file does not fit its bytes");
  file->header.base.assign(bytes.substr(kFixedSize, sizes.id));
  if (!IsBackupId(file->header.base))
    return Corruption(path, kFixedSize, "there can be no base with such an id");
  const size_t offset = kFixedSize + sizes.id;
  VARVE_ASSIGN_OR_RETURN(const std::string commits,
                         Unpack(content.substr(offset), sizes.commits, path, offset));
  if (!ReadCommits(commits, file)) return Corruption(path, offset, "the commits make no sense");
  return absl::OkStatus();
}

absl::StatusOr<ArchiveFileHeader> ReadArchiveFileHeader(FileSystem* file_system,
                                                        const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string bytes(kFixedSize + kLongestId, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.size(), bytes.data()));
  bytes.resize(read);
  ArchiveFileHeader header;
  Sizes sizes;
  VARVE_RETURN_IF_ERROR(ReadFixed(bytes, path, &header, &sizes));
  if (size != sizes.OfFile()) {
    return Corruption(
        path, size,
        fmt::format("the file has {} bytes, and {} according to its header", size, sizes.OfFile()));
  }
  header.base.assign(bytes, kFixedSize, sizes.id);
  if (!IsBackupId(header.base))
    return Corruption(path, kFixedSize, "there can be no base with such an id");
  return header;
}

absl::StatusOr<std::string> ReadWholeFile(FileSystem* file_system, const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > kMostBytes)
    return Corruption(path, kMostBytes, fmt::format("the file has {} bytes", size));
  std::string bytes(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.size(), bytes.data()));
  bytes.resize(read);
  return bytes;
}

}  // namespace varve
