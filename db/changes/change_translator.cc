#include "db/changes/change_translator.h"

#include <optional>
#include <utility>

#include "db/format/batch_codec.h"
#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

Kind KindOfPut(WriteCause cause) {
  switch (cause) {
    case WriteCause::kExpiryChange:
      return Kind::kExpire;
    case WriteCause::kMetadataChange:
      return Kind::kMeta;
    default:
      return Kind::kSet;
  }
}

Kind KindOfDelete(WriteCause cause) {
  switch (cause) {
    case WriteCause::kExpired:
      return Kind::kExpired;
    case WriteCause::kEvicted:
      return Kind::kEvicted;
    default:
      return Kind::kDelete;
  }
}

std::string_view WithoutGeneration(std::string_view key) {
  return key.size() < kGenerationSize ? std::string_view() : key.substr(kGenerationSize);
}

std::string BytesOf(NamespaceId id) {
  std::string bytes(kGenerationSize, '\0');
  EncodeGeneration(bytes.data(), id);
  return bytes;
}

}  // namespace

// --- Namespaces ----------------------------------------------------------------------------------

void ChangeTranslator::Spaces::Set(NamespaceId id, NamespaceGeneration generation) {
  Space& space = by_id[id];
  by_generation.erase(space.generation);
  space.generation = generation;
  if (generation != kNoGeneration) by_generation[generation] = id;
}

std::string ChangeTranslator::Spaces::NameOf(NamespaceId id) const {
  const auto found = by_id.find(id);
  return found == by_id.end() || found->second.name.empty() ? fmt::to_string(id)
                                                            : found->second.name;
}

void ChangeTranslator::Spaces::Apply(const RecordView& record) {
  if (record.kind == RecordKind::kSwitchGeneration) {
    Set(GenerationOf(record.key), GenerationOf(record.value));
    return;
  }
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(record);
  if (!change) return;
  const NamespaceId id = change->space.id;
  switch (change->verb) {
    case NamespaceChange::Verb::kCreate:
    case NamespaceChange::Verb::kClone:
      Set(id, change->generation);
      by_id[id].name = change->space.name;
      break;
    case NamespaceChange::Verb::kAlter:
      by_id[id].name = change->space.name;
      break;
    case NamespaceChange::Verb::kDrop:
      Set(id, kNoGeneration);
      by_id.erase(id);
      break;
    case NamespaceChange::Verb::kSwap: {
      const NamespaceGeneration one = by_id[id].generation;
      const NamespaceGeneration other = by_id[change->other].generation;
      Set(id, other);
      Set(change->other, one);
      if (other != kNoGeneration) by_generation[other] = id;
      break;
    }
  }
}

void ChangeTranslator::Start(const NamespaceTable& namespaces) {
  spaces_ = {};
  indexes_.clear();
  for (const ManifestNamespace& entry : namespaces.entries()) {
    spaces_.Set(entry.id, entry.generation);
    if (const NamespaceDescription* const space = namespaces.Description(entry.id))
      spaces_.by_id[entry.id].name = space->name;
  }
}

// --- Batches -------------------------------------------------------------------------------------

void ChangeTranslator::Append(const Spaces& spaces, NamespaceId id, ChangeRecord record,
                              SequenceNumber last, ChangeBlock* block, std::string* operations) {
  auto found = indexes_.find(id);
  if (found == indexes_.end()) {
    block->dictionary.emplace_back(id, spaces.NameOf(id));
    found = indexes_.emplace(id, static_cast<uint32_t>(block->dictionary.size() - 1)).first;
  }
  record.space = found->second;
  AppendChangeRecord(record, last, operations);
}

void ChangeTranslator::AppendChange(const RecordView& record, std::string_view encoded,
                                    Spaces* spaces, SequenceNumber last, ChangeBlock* block,
                                    std::string* operations) {
  ChangeRecord shown{.version = record.sequence, .metadata = encoded};
  if (record.kind == RecordKind::kSwitchGeneration) {
    const NamespaceId id = GenerationOf(record.key);
    spaces->Apply(record);
    shown.kind = Kind::kFlush;
    Append(*spaces, id, shown, last, block, operations);
    return;
  }
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(record);
  if (!change) return;
  const NamespaceId id = change->space.id;
  std::string other_name, value;
  switch (change->verb) {
    case NamespaceChange::Verb::kAlter:
      spaces->Apply(record);
      indexes_.erase(id);  // under another name it is another entry
      shown.kind = kStoresOwn;
      Append(*spaces, id, shown, last, block, operations);
      return;
    case NamespaceChange::Verb::kDrop:
      shown.kind = Kind::kDrop;
      Append(*spaces, id, shown, last, block, operations);
      spaces->Apply(record);
      indexes_.erase(id);
      return;
    case NamespaceChange::Verb::kCreate:
      shown.kind = Kind::kCreate;
      value = GroupingText(change->space.options.grouping);
      break;
    case NamespaceChange::Verb::kClone:
      shown.kind = Kind::kClone;
      // A namespace that comes back is a clone of itself, which has no name before.
      other_name = change->other == id ? change->space.name : spaces->NameOf(change->other);
      if (change->past) value = fmt::to_string(change->past->version);
      break;
    case NamespaceChange::Verb::kSwap:
      shown.kind = Kind::kSwap;
      other_name = spaces->NameOf(change->other);
      value = BytesOf(change->other);
      break;
  }
  spaces->Apply(record);
  if (change->verb != NamespaceChange::Verb::kSwap) indexes_.erase(id);
  shown.key = other_name;
  shown.value = value;
  Append(*spaces, id, shown, last, block, operations);
}

bool ChangeTranslator::Translate(std::string_view batch, SequenceNumber first, uint32_t count,
                                 ChangeBlock* block, std::string* operations) {
  operations->clear();
  const SequenceNumber last = first + count - 1;
  // A copy, only once the batch changes namespaces: what throws leaves the map as it was.
  std::optional<Spaces> changed;
  bool is_seen = false;
  RecordView record;
  BatchReader reader(batch);
  for (SequenceNumber version = first; reader.Next(&record); ++version) {
    record.sequence = version;
    if (NamespaceTable::IsChangedBy(record)) {
      if (!changed) changed = spaces_;
      AppendChange(record, reader.bytes(), &*changed, last, block, operations);
      is_seen = true;
      continue;
    }
    if (record.kind == RecordKind::kChangeFeed) {
      Append(changed ? *changed : spaces_, kDefaultNamespace,
             {.kind = kStoresOwn, .version = version, .metadata = reader.bytes()}, last, block,
             operations);
      continue;
    }
    ChangeRecord shown{.version = version,
                       .key = WithoutGeneration(record.key),
                       .value = record.value,
                       .metadata = record.metadata,
                       .expiry_ms = record.expiry_ms};
    switch (record.kind) {
      case RecordKind::kValue:
        shown.kind = KindOfPut(record.cause);
        break;
      case RecordKind::kTombstone:
        shown.kind = KindOfDelete(record.cause);
        break;
      case RecordKind::kRangeTombstone:
        shown.kind = Kind::kDeleteRange;
        shown.value = WithoutGeneration(record.value);
        break;
      case RecordKind::kIngest:
        shown.kind = Kind::kIngest;
        shown.value = WithoutGeneration(record.value);
        break;
      default:
        continue;  // the store's own
    }
    const Spaces& spaces = changed ? *changed : spaces_;
    const auto space = spaces.by_generation.find(GenerationOf(record.key));
    if (space == spaces.by_generation.end()) continue;  // of the index of expiries
    Append(spaces, space->second, shown, last, block, operations);
    is_seen = true;
  }
  VARVE_ASSERT(reader.ok());
  if (changed) spaces_ = *std::move(changed);
  return is_seen;
}

void ChangeTranslator::Follow(std::string_view batch) {
  std::optional<Spaces> changed;
  RecordView record;
  for (BatchReader reader(batch); reader.Next(&record);) {
    if (!NamespaceTable::IsChangedBy(record)) continue;
    if (!changed) changed = spaces_;
    changed->Apply(record);
    if (record.kind == RecordKind::kChangeNamespace) indexes_.clear();
  }
  if (changed) spaces_ = *std::move(changed);
}

}  // namespace varve
