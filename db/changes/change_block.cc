#include "db/changes/change_block.h"

#include <algorithm>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

constexpr uint8_t kKindMask = 0x1f, kWithExpiry = 0x20, kWithMetadata = 0x40;
constexpr uint8_t kLastKind = static_cast<uint8_t>(Kind::kMeta);

bool IsKnown(uint8_t kind) { return kind <= kLastKind || kind == static_cast<uint8_t>(kStoresOwn); }

bool HasValue(Kind kind) {
  return kind == Kind::kSet || kind == Kind::kExpire || kind == Kind::kMeta;
}

// Checks that what is under a good checksum makes sense, so that readers need not.
absl::Status CheckCommits(const ChangeBlock& block, uint32_t count, const std::string& path,
                          uint64_t offset) {
  SequenceNumber last = block.after;
  uint64_t instant = block.first_ms;
  uint32_t found = 0;
  for (size_t at = 0; at < block.commits.size(); ++found) {
    ChangeCommit commit;
    if (!ReadCommit(block, &at, &commit) || commit.last <= last || commit.last > block.last ||
        commit.instant_ms < instant || commit.instant_ms > block.last_ms)
      return Corruption(path, offset, "a commit of a block of changes makes no sense");
    last = commit.last;
    instant = commit.instant_ms;
    SequenceNumber before = kNoSequence;
    for (size_t operation = 0; operation < commit.operations.size();) {
      ChangeRecord record;
      if (!ReadChangeRecord(commit, &operation, &record) ||
          record.space >= block.dictionary.size() || record.version <= before)
        return Corruption(path, offset, "an operation of a block of changes makes no sense");
      before = record.version;
    }
  }
  if (found != count) return Corruption(path, offset, "a block of changes lacks commits");
  return absl::OkStatus();
}

}  // namespace

bool ConcernsNamespace(Kind kind) {
  switch (kind) {
    case Kind::kFlush:
    case Kind::kCreate:
    case Kind::kDrop:
    case Kind::kSwap:
    case Kind::kClone:
      return true;
    default:
      return false;
  }
}

void AppendChangeRecord(const ChangeRecord& record, SequenceNumber last, std::string* operations) {
  VARVE_ASSERT(record.version <= last);
  const bool expires = record.expiry_ms != kNoExpiry;
  operations->push_back(static_cast<char>(static_cast<uint8_t>(record.kind) |
                                          (expires ? kWithExpiry : 0) |
                                          (record.metadata.empty() ? 0 : kWithMetadata)));
  PutVarint32(operations, record.space);
  PutVarint32(operations, static_cast<uint32_t>(last - record.version));
  PutVarint32(operations, static_cast<uint32_t>(record.key.size()));
  PutVarint32(operations, static_cast<uint32_t>(record.value.size()));
  if (expires) PutFixed64(operations, record.expiry_ms);
  if (!record.metadata.empty()) PutLengthPrefixed(operations, record.metadata);
  operations->append(record.key).append(record.value);
}

void AddCommit(const ChangeCommit& commit, ChangeBlock* block) {
  VARVE_ASSERT(commit.last > block->last && block->last >= block->after);
  if (!commit.operations.empty()) {
    const uint64_t instant_ms = std::max(commit.instant_ms, block->last_ms);
    const uint64_t first_ms = block->count == 0 ? instant_ms : block->first_ms;
    std::string head;
    PutVarint64(&head, commit.last - block->after);
    PutVarint64(&head, instant_ms - first_ms);
    PutVarint32(&head, static_cast<uint32_t>(commit.operations.size()));
    const size_t needed = block->commits.size() + head.size() + commit.operations.size();
    if (needed > block->commits.capacity())
      block->commits.reserve(std::max(needed, 2 * block->commits.capacity()));
    block->commits.append(head).append(commit.operations);
    block->first_ms = first_ms;
    ++block->count;
  }
  // A commit without operations counts, too: a file that holds nothing else is as old as they.
  block->last_ms = std::max(block->last_ms, commit.instant_ms);
  block->last = commit.last;
}

bool ReadCommit(const ChangeBlock& block, size_t* offset, ChangeCommit* commit) {
  const std::string_view rest = std::string_view(block.commits).substr(*offset);
  ByteReader reader(rest);
  uint64_t last = 0, instant = 0;
  if (!reader.ReadVarint64(&last) || !reader.ReadVarint64(&instant) ||
      !reader.ReadLengthPrefixed(&commit->operations) || last > kMaxSequence - block.after)
    return false;
  commit->last = block.after + last;
  commit->instant_ms = block.first_ms + instant;
  *offset += rest.size() - reader.rest().size();
  return true;
}

bool ReadChangeRecord(const ChangeCommit& commit, size_t* offset, ChangeRecord* record) {
  const std::string_view rest = commit.operations.substr(*offset);
  ByteReader reader(rest);
  uint8_t kind = 0;
  uint32_t distance = 0, key_size = 0, value_size = 0;
  if (!reader.ReadByte(&kind) || !IsKnown(kind & kKindMask) || (kind & 0x80) != 0 ||
      !reader.ReadVarint32(&record->space) || !reader.ReadVarint32(&distance) ||
      distance >= commit.last || !reader.ReadVarint32(&key_size) ||
      !reader.ReadVarint32(&value_size))
    return false;
  record->kind = static_cast<Kind>(kind & kKindMask);
  record->version = commit.last - distance;
  record->expiry_ms = kNoExpiry;
  record->metadata = {};
  if ((kind & kWithExpiry) != 0 && !reader.ReadFixed64(&record->expiry_ms)) return false;
  if ((kind & kWithMetadata) != 0 && !reader.ReadLengthPrefixed(&record->metadata)) return false;
  if (!reader.ReadBytes(key_size, &record->key) || !reader.ReadBytes(value_size, &record->value))
    return false;
  *offset += rest.size() - reader.rest().size();
  return true;
}

bool IsSeen(const ChangeCommit& commit) {
  for (size_t at = 0; at < commit.operations.size();) {
    ChangeRecord record;
    if (!ReadChangeRecord(commit, &at, &record)) return false;
    if (record.kind != kStoresOwn) return true;
  }
  return false;
}

void ShowOperation(const ChangeBlock& block, const ChangeRecord& record, bool keys_only,
                   ChangeOperation* shown) {
  VARVE_ASSERT(record.kind != kStoresOwn);
  const NamedSpace& space = block.dictionary[record.space];
  shown->kind = record.kind;
  shown->space = space.first;
  shown->name = space.second;
  shown->key = record.key;
  shown->expiry_ms = record.expiry_ms;
  shown->version = record.version;
  // The value of a swap is a generation, which is the store's own.
  if (record.kind == Kind::kSwap || (keys_only && HasValue(record.kind))) return;
  shown->value = record.value;
  if (!ConcernsNamespace(record.kind)) shown->metadata = record.metadata;
}

std::string EncodeChangeBlock(const ChangeBlock& block, uint64_t file_number, uint64_t offset) {
  std::string dictionary;
  for (const NamedSpace& space : block.dictionary) {
    PutVarint32(&dictionary, space.first);
    PutLengthPrefixed(&dictionary, space.second);
  }
  const uint64_t seed = file_number ^ offset;
  std::string bytes(8, '\0');
  bytes.reserve(kChangeBlockHeaderSize + dictionary.size() + block.commits.size());
  PutFixed32(&bytes, static_cast<uint32_t>(dictionary.size() + block.commits.size()));
  PutFixed32(&bytes, static_cast<uint32_t>(dictionary.size()));
  PutFixed64(&bytes, block.after);
  PutFixed64(&bytes, block.last);
  PutFixed64(&bytes, block.first_ms);
  PutFixed64(&bytes, block.last_ms);
  PutFixed32(&bytes, 0);  // flags
  PutFixed32(&bytes, block.count);
  VARVE_ASSERT(bytes.size() == kChangeBlockHeaderSize);
  bytes.append(dictionary).append(block.commits);
  EncodeFixed32(bytes.data() + 4,
                Checksum(std::string_view(bytes).substr(kChangeBlockHeaderSize), seed));
  EncodeFixed32(bytes.data(), Checksum({bytes.data() + 4, kChangeBlockHeaderSize - 4}, seed));
  return bytes;
}

absl::StatusOr<ChangeBlockHeader> DecodeChangeBlockHeader(std::string_view bytes,
                                                          const std::string& path,
                                                          uint64_t file_number, uint64_t offset) {
  VARVE_ASSERT(bytes.size() >= kChangeBlockHeaderSize);
  const char* const at = bytes.data();
  if (DecodeFixed32(at) != Checksum({at + 4, kChangeBlockHeaderSize - 4}, file_number ^ offset))
    return Corruption(path, offset, "the header of a block of changes is damaged");
  if (DecodeFixed32(at + 48) != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "{} at offset {}: a later version of Varve wrote this block of changes", path, offset));
  }
  ChangeBlockHeader header{.payload_size = DecodeFixed32(at + 8),
                           .dictionary_size = DecodeFixed32(at + 12),
                           .after = DecodeFixed64(at + 16),
                           .last = DecodeFixed64(at + 24),
                           .first_ms = DecodeFixed64(at + 32),
                           .last_ms = DecodeFixed64(at + 40),
                           .count = DecodeFixed32(at + 52)};
  if (header.dictionary_size > header.payload_size || header.last <= header.after ||
      header.last > kMaxSequence || header.last_ms < header.first_ms)
    return Corruption(path, offset, "the header of a block of changes makes no sense");
  return header;
}

absl::Status DecodeChangeBlock(const ChangeBlockHeader& header, std::string_view header_bytes,
                               std::string_view payload, const std::string& path,
                               uint64_t file_number, uint64_t offset, ChangeBlock* block) {
  VARVE_ASSERT(payload.size() == header.payload_size);
  if (DecodeFixed32(header_bytes.data() + 4) != Checksum(payload, file_number ^ offset))
    return Corruption(path, offset, "a block of changes is damaged");
  block->after = header.after;
  block->last = header.last;
  block->first_ms = header.first_ms;
  block->last_ms = header.last_ms;
  block->count = header.count;
  block->dictionary.clear();
  for (ByteReader reader(payload.substr(0, header.dictionary_size)); !reader.empty();) {
    uint32_t id = 0;
    std::string_view name;
    if (!reader.ReadVarint32(&id) || !reader.ReadLengthPrefixed(&name))
      return Corruption(path, offset, "the names of a block of changes make no sense");
    block->dictionary.emplace_back(id, std::string(name));
  }
  block->commits.assign(payload.substr(header.dictionary_size));
  return CheckCommits(*block, header.count, path, offset);
}

}  // namespace varve
