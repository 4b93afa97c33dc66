#include "varve/write_batch.h"

#include <algorithm>
#include <utility>

#include "db/format/batch_codec.h"
#include "db/format/expiry_index.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr size_t kKeptBytes = 4u << 20;  // of memory that a batch keeps for its next use

}  // namespace

WriteBatch::WriteBatch() { Clear(); }

void WriteBatch::Clear() {
  // A caller clears a batch after its commit, which must not fail any more.
  if (encoding_.record.capacity() > kKeptBytes) {
    TryWithMemory([this] { std::string(kBatchHeaderSize, '\0').swap(encoding_.record); });
  }
  if (encoding_.condition_keys.capacity() > kKeptBytes)
    std::string().swap(encoding_.condition_keys);
  if (encoding_.conditions.capacity() > kKeptBytes / sizeof(Encoding::Condition))
    std::vector<Encoding::Condition>().swap(encoding_.conditions);
  encoding_.record.assign(kBatchHeaderSize, '\0');
  operations_ = 0;
  space_ = kDefaultNamespace;
  usual_expiry_ms_ = kNoExpiry;
  clones_namespace_ = false;
  adds_data_ = false;
  encoding_.conditions.clear();
  encoding_.range_conditions.clear();
  encoding_.condition_keys.clear();
  status_ = absl::OkStatus();
}

void WriteBatch::Put(std::string_view key, std::string_view value, NamespaceId space,
                     uint64_t expiry_ms) {
  adds_data_ = true;
  Append(RecordKind::kValue, space, key, value,
         expiry_ms == kUsualExpiry ? usual_expiry_ms_ : expiry_ms);
}

void WriteBatch::Put(std::string_view key, std::string_view value, const PutExtras& extras,
                     NamespaceId space) {
  adds_data_ = true;
  Append(KindOf(RecordKind::kValue, extras.cause), space, key, value,
         extras.expiry_ms == kUsualExpiry ? usual_expiry_ms_ : extras.expiry_ms, extras.metadata);
}

void WriteBatch::MarkClock(uint64_t instant_ms) {
  char instant[8];
  EncodeFixed64(instant, instant_ms);
  Append(RecordKind::kClockMark, kExpirySpace, {}, {instant, sizeof(instant)});
}

void WriteBatch::ChangeFeed(std::string_view name, std::string_view change) {
  Append(RecordKind::kChangeFeed, kExpirySpace, name, change);
}

void WriteBatch::Delete(std::string_view key, NamespaceId space, WriteCause cause) {
  Append(KindOf(RecordKind::kTombstone, cause), space, key, {});
}

void WriteBatch::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  if (end.size() > kMaxKeySize + 1) {  // one byte more than a key: right behind the longest one
    status_ = absl::InvalidArgumentError(fmt::format(
        "end of a range of {} bytes: at most {} are allowed", end.size(), kMaxKeySize + 1));
    return;
  }
  if (!end.empty() && end <= begin) return;
  // An empty end means the end of the namespace: the commit finds four bytes here and replaces them
  // by those of the next generation.
  NoteLackOfMemory(
      [&] { Append(RecordKind::kRangeTombstone, space, begin, TreeKey(space, end).view()); });
}

void WriteBatch::ClearNamespace(NamespaceId space) {
  Append(RecordKind::kSwitchGeneration, space, {}, std::string_view("\0\0\0\0", kGenerationSize));
}

void WriteBatch::CreateNamespace(const NamespaceDescription& space) {
  adds_data_ = true;
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, space.id, {}, EncodeNamespaceChange({.space = space}));
  });
}

void WriteBatch::CloneNamespace(NamespaceId source, const NamespaceDescription& space) {
  ChangeNamespace({.verb = NamespaceChange::Verb::kClone, .space = space, .other = source});
}

void WriteBatch::CloneNamespaceAt(NamespaceId source, SequenceNumber version,
                                  const NamespaceDescription& space) {
  ChangeNamespace({.verb = NamespaceChange::Verb::kClone,
                   .space = space,
                   .other = source,
                   .past = ClonedPast{.version = version}});
}

void WriteBatch::ChangeNamespace(const NamespaceChange& change) {
  clones_namespace_ |= change.verb == NamespaceChange::Verb::kClone;
  adds_data_ = true;
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, change.space.id, {}, EncodeNamespaceChange(change));
  });
}

void WriteBatch::AlterNamespace(const NamespaceDescription& space) {
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, space.id, {},
           EncodeNamespaceChange({.verb = NamespaceChange::Verb::kAlter, .space = space}));
  });
}

void WriteBatch::DropNamespace(NamespaceId space) {
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, space, {},
           EncodeNamespaceChange({.verb = NamespaceChange::Verb::kDrop}));
  });
}

void WriteBatch::SwapNamespaces(NamespaceId one, NamespaceId other) {
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, one, {},
           EncodeNamespaceChange({.verb = NamespaceChange::Verb::kSwap, .other = other}));
  });
}

void WriteBatch::RequireUnchanged(std::string_view key, const ReadPoint& read, NamespaceId space) {
  Require(key, read, space, /*puts_alone=*/false);
}

void WriteBatch::RequireNotPut(std::string_view key, const ReadPoint& read, NamespaceId space) {
  Require(key, read, space, /*puts_alone=*/true);
}

void WriteBatch::Require(std::string_view key, const ReadPoint& read, NamespaceId space,
                         bool puts_alone) {
  NoteLackOfMemory([&] {
    const size_t offset = encoding_.condition_keys.size();
    encoding_.condition_keys.append(TreeKey(InUse(space), key).view());
    VARVE_ASSERT(encoding_.condition_keys.size() == offset + kGenerationSize + key.size());
    encoding_.conditions.push_back({offset, kGenerationSize + key.size(), read, puts_alone});
  });
}

void WriteBatch::RequireRangeUnchanged(std::string_view begin, std::string_view end,
                                       SequenceNumber sequence, NamespaceId space) {
  if (!end.empty() && end <= begin) return;
  NoteLackOfMemory([&] {
    const size_t offset = encoding_.condition_keys.size();
    encoding_.condition_keys.append(TreeKey(InUse(space), begin).view())
        .append(TreeKey(InUse(space), end).view());
    encoding_.range_conditions.push_back(
        {offset, kGenerationSize + begin.size(), kGenerationSize + end.size(), sequence});
  });
}

namespace {

absl::Status VisitChange(const RecordView& operation, WriteBatch::OperationVisitor* visitor) {
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(operation);
  if (!change)
    return absl::InternalError("a batch holds a change of a namespace that makes no sense");
  switch (change->verb) {
    case NamespaceChange::Verb::kCreate:
      return visitor->CreateNamespace(change->space);
    case NamespaceChange::Verb::kAlter:
      return visitor->AlterNamespace(change->space);
    case NamespaceChange::Verb::kDrop:
      return visitor->DropNamespace(change->space.id);
    case NamespaceChange::Verb::kSwap:
      return visitor->SwapNamespaces(change->space.id, change->other);
    case NamespaceChange::Verb::kClone:
      if (change->past)
        return visitor->CloneNamespaceAt(change->other, change->past->version, change->space);
      return visitor->CloneNamespace(change->other, change->space);
  }
  return absl::InternalError("a batch holds a change of a namespace of no known kind");
}

absl::Status Visit(const RecordView& operation, WriteBatch::OperationVisitor* visitor) {
  const NamespaceId space = GenerationOf(operation.key);
  const std::string_view key = UserKeyOf(operation.key);
  switch (operation.kind) {
    case RecordKind::kValue:
      return visitor->Put(space, key, operation.value,
                          {.expiry_ms = operation.expiry_ms,
                           .metadata = operation.metadata,
                           .cause = operation.cause});
    case RecordKind::kTombstone:
      return visitor->Delete(space, key, operation.cause);
    case RecordKind::kRangeTombstone:
      return visitor->DeleteRange(space, key, UserKeyOf(operation.value));
    case RecordKind::kSwitchGeneration:
      return visitor->ClearNamespace(space);
    case RecordKind::kChangeNamespace:
      return VisitChange(operation, visitor);
    case RecordKind::kClockMark:  // the embedded engine's own
    case RecordKind::kChangeFeed:
    case RecordKind::kIngest:
      return absl::OkStatus();
    default:
      break;  // BatchReader takes kinds with a cause apart
  }
  return absl::InternalError("a batch holds an operation of no known kind");
}

}  // namespace

absl::Status WriteBatch::OperationVisitor::CloneNamespaceAt(NamespaceId, SequenceNumber,
                                                            const NamespaceDescription&) {
  return absl::FailedPreconditionError("this store keeps no history that could be cloned");
}

absl::Status WriteBatch::ForEachOperation(OperationVisitor* visitor) const {
  if (!status_.ok()) return status_;
  BatchReader reader(std::string_view(encoding_.record).substr(kBatchHeaderSize));
  for (RecordView operation; reader.Next(&operation);) {
    if (absl::Status status = Visit(operation, visitor); !status.ok()) return status;
  }
  VARVE_ASSERT(reader.ok());
  return absl::OkStatus();
}

absl::Status WriteBatch::ForEachCondition(ConditionVisitor* visitor) const {
  if (!status_.ok()) return status_;
  const std::string_view keys = encoding_.condition_keys;
  for (const Encoding::Condition& condition : encoding_.conditions) {
    VARVE_ASSERT(condition.key_size >= kGenerationSize);
    const std::string_view key = keys.substr(condition.key_offset, condition.key_size);
    absl::Status status =
        condition.puts_alone
            ? visitor->NotPut(GenerationOf(key), UserKeyOf(key), condition.read)
            : visitor->Unchanged(GenerationOf(key), UserKeyOf(key), condition.read);
    if (!status.ok()) return status;
  }
  for (const Encoding::RangeCondition& condition : encoding_.range_conditions) {
    const std::string_view begin = keys.substr(condition.begin_offset, condition.begin_size);
    const std::string_view end =
        keys.substr(condition.begin_offset + condition.begin_size, condition.end_size);
    absl::Status status = visitor->RangeUnchanged(GenerationOf(begin), UserKeyOf(begin),
                                                  UserKeyOf(end), condition.sequence);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Change>
void WriteBatch::NoteLackOfMemory(Change change) {
  absl::Status status = GuardMemory("adding to a batch", [&] {
    change();
    return absl::OkStatus();
  });
  if (!status.ok()) status_ = std::move(status);
}

void WriteBatch::Append(RecordKind kind, NamespaceId space, std::string_view key,
                        std::string_view value, uint64_t expiry_ms, std::string_view metadata) {
  if (!status_.ok()) return;
  if (key.size() > kMaxKeySize + (space == kExpirySpace ? kExpiryIndexPrefixSize : 0)) {
    status_ = absl::InvalidArgumentError(
        fmt::format("key of {} bytes: at most {} are allowed", key.size(), kMaxKeySize));
  } else if (value.size() > kMaxValueSize) {
    status_ = absl::InvalidArgumentError(
        fmt::format("value of {} bytes: at most {} are allowed", value.size(), kMaxValueSize));
  } else if (metadata.size() > kMaxMetadataSize) {
    status_ = absl::InvalidArgumentError(fmt::format("metadata of {} bytes: at most {} are allowed",
                                                     metadata.size(), kMaxMetadataSize));
  } else if (operations_ == kMaxBatchOperations ||
             encoding_.record.size() + key.size() + value.size() + metadata.size() >
                 kMaxBatchBytes) {
    status_ = absl::InvalidArgumentError(
        fmt::format("batch too large: at most {} operations and {} bytes are allowed",
                    kMaxBatchOperations, kMaxBatchBytes));
  } else {
    NoteLackOfMemory([&] {
      const bool is_large =
          KindWithoutCause(kind) == RecordKind::kValue && value.size() >= kSmallestLargeValue;
      char header[kMaxLargeHeaderSize + kGenerationSize];
      header[0] = static_cast<char>(
          static_cast<uint8_t>(kind) | (expiry_ms != 0 ? kHasExpiry : kNoFlags) |
          (metadata.empty() ? kNoFlags : kHasMetadata) | (is_large ? kSeparatedValue : kNoFlags));
      char* end = EncodeVarint64(header + 1, kGenerationSize + key.size());
      end = EncodeVarint64(end, value.size());
      if (is_large) end = std::fill_n(end, kLargeSealSize, '\0');
      if (expiry_ms != 0) {
        EncodeFixed64(end, expiry_ms);
        end += sizeof(expiry_ms);
      }
      if (!metadata.empty()) [[unlikely]] {
        end = EncodeVarint64(end, metadata.size());
        encoding_.record.append(header, static_cast<size_t>(end - header)).append(metadata);
        end = header;
      }
      EncodeGeneration(end, InUse(space));
      end += kGenerationSize;
      encoding_.record.append(header, static_cast<size_t>(end - header));
      encoding_.record.append(key);
      encoding_.record.append(value);
      ++operations_;
    });
  }
}

}  // namespace varve
