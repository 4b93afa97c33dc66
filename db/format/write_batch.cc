#include "varve/write_batch.h"

#include <algorithm>
#include <utility>

#include "db/format/expiry_index.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr size_t kKeptBytes = 4u << 20;  // of memory that a batch keeps for its next use

}  // namespace

WriteBatch::WriteBatch() { Clear(); }

void WriteBatch::Clear() {
  // Committed batches are cleared, which must not fail any more.
  if (encoded_.capacity() > kKeptBytes) {
    TryWithMemory([this] { std::string(kBatchHeaderSize, '\0').swap(encoded_); });
  }
  if (condition_keys_.capacity() > kKeptBytes) std::string().swap(condition_keys_);
  if (conditions_.capacity() > kKeptBytes / sizeof(Condition))
    std::vector<Condition>().swap(conditions_);
  encoded_.assign(kBatchHeaderSize, '\0');
  operations_ = 0;
  space_ = kDefaultNamespace;
  usual_expiry_ms_ = kNoExpiry;
  clears_namespace_ = false;
  clones_namespace_ = false;
  adds_data_ = false;
  conditions_.clear();
  range_conditions_.clear();
  condition_keys_.clear();
  status_ = absl::OkStatus();
}

void WriteBatch::Put(std::string_view key, std::string_view value, NamespaceId space,
                     uint64_t expiry_ms) {
  adds_data_ = true;
  Append(RecordKind::kValue, space, key, value,
         expiry_ms == kUsualExpiry ? usual_expiry_ms_ : expiry_ms);
}

void WriteBatch::MarkClock(uint64_t instant_ms) {
  char instant[8];
  EncodeFixed64(instant, instant_ms);
  Append(RecordKind::kClockMark, kExpirySpace, {}, {instant, sizeof(instant)});
}

void WriteBatch::Delete(std::string_view key, NamespaceId space) {
  Append(RecordKind::kTombstone, space, key, {});
}

void WriteBatch::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  if (end.size() > kMaxKeySize + 1) {  // one byte more than a key: right behind the longest one
    status_ = absl::InvalidArgumentError(fmt::format(
        "end of a range of {} bytes: at most {} are allowed", end.size(), kMaxKeySize + 1));
    return;
  }
  if (!end.empty() && end <= begin) return;
  // An empty end is the namespace's own: the commit finds four bytes here and puts the next
  // generation's in their place.
  NoteLackOfMemory(
      [&] { Append(RecordKind::kRangeTombstone, space, begin, TreeKey(space, end).view()); });
}

void WriteBatch::ClearNamespace(NamespaceId space) {
  clears_namespace_ = true;
  Append(RecordKind::kSwitchGeneration, space, {}, std::string_view("\0\0\0\0", kGenerationSize));
}

void WriteBatch::CreateNamespace(const NamespaceDescription& space) {
  adds_data_ = true;
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, space.id, {}, EncodeNamespaceChange({.space = space}));
  });
}

void WriteBatch::CloneNamespace(NamespaceId source, const NamespaceDescription& space) {
  adds_data_ = true;
  clones_namespace_ = true;
  NoteLackOfMemory([&] {
    Append(RecordKind::kChangeNamespace, space.id, {},
           EncodeNamespaceChange(
               {.verb = NamespaceChange::Verb::kClone, .space = space, .other = source}));
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

void WriteBatch::RequireUnchanged(std::string_view key, SequenceNumber sequence,
                                  NamespaceId space) {
  Require(key, sequence, space, /*puts_alone=*/false);
}

void WriteBatch::RequireNotPut(std::string_view key, SequenceNumber sequence, NamespaceId space) {
  Require(key, sequence, space, /*puts_alone=*/true);
}

void WriteBatch::Require(std::string_view key, SequenceNumber sequence, NamespaceId space,
                         bool puts_alone) {
  NoteLackOfMemory([&] {
    const size_t offset = condition_keys_.size();
    condition_keys_.append(TreeKey(InUse(space), key).view());
    conditions_.push_back({offset, kGenerationSize + key.size(), sequence, puts_alone});
  });
}

void WriteBatch::RequireRangeUnchanged(std::string_view begin, std::string_view end,
                                       SequenceNumber sequence, NamespaceId space) {
  if (!end.empty() && end <= begin) return;
  NoteLackOfMemory([&] {
    const size_t offset = condition_keys_.size();
    condition_keys_.append(TreeKey(InUse(space), begin).view())
        .append(TreeKey(InUse(space), end).view());
    range_conditions_.push_back(
        {offset, kGenerationSize + begin.size(), kGenerationSize + end.size(), sequence});
  });
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
                        std::string_view value, uint64_t expiry_ms) {
  if (!status_.ok()) return;
  if (key.size() > kMaxKeySize + (space == kExpirySpace ? kExpiryIndexPrefixSize : 0)) {
    status_ = absl::InvalidArgumentError(
        fmt::format("key of {} bytes: at most {} are allowed", key.size(), kMaxKeySize));
  } else if (value.size() > kMaxValueSize) {
    status_ = absl::InvalidArgumentError(
        fmt::format("value of {} bytes: at most {} are allowed", value.size(), kMaxValueSize));
  } else if (operations_ == kMaxBatchOperations ||
             encoded_.size() + key.size() + value.size() > kMaxBatchBytes) {
    status_ = absl::InvalidArgumentError(
        fmt::format("batch too large: at most {} operations and {} bytes are allowed",
                    kMaxBatchOperations, kMaxBatchBytes));
  } else {
    NoteLackOfMemory([&] {
      const bool is_large = kind == RecordKind::kValue && value.size() >= kSmallestLargeValue;
      char header[1 + 2 * kMaxVarint32Bytes + kLargeSealSize + sizeof(expiry_ms) + kGenerationSize];
      header[0] =
          static_cast<char>(static_cast<uint8_t>(kind) | (expiry_ms != 0 ? kHasExpiry : kNoFlags) |
                            (is_large ? kSeparatedValue : kNoFlags));
      char* end = EncodeVarint64(header + 1, kGenerationSize + key.size());
      end = EncodeVarint64(end, value.size());
      if (is_large) end = std::fill_n(end, kLargeSealSize, '\0');
      if (expiry_ms != 0) {
        EncodeFixed64(end, expiry_ms);
        end += sizeof(expiry_ms);
      }
      EncodeGeneration(end, InUse(space));
      end += kGenerationSize;
      encoded_.append(header, static_cast<size_t>(end - header));
      encoded_.append(key);
      encoded_.append(value);
      ++operations_;
    });
  }
}

}  // namespace varve
