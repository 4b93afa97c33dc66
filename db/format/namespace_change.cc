#include "db/format/namespace_change.h"

namespace varve {
namespace {

constexpr char kCloneOfPast = 6;  // the verb on disk
constexpr uint8_t kStoresMode = 0;
// In the byte of the sync mode: limits of the history follow.
constexpr uint8_t kHasHistory = 0x80;
constexpr uint8_t kHasCompression = 0x20;  // likewise, how values are compressed
constexpr uint8_t kHasEviction = 0x40;
constexpr uint8_t kHasGroups = 0x10;
constexpr uint8_t kVolatileOnly = 0x80;  // of the byte of the eviction rule

void EncodeId(NamespaceId id, std::string* bytes) {
  char text[kGenerationSize];
  EncodeGeneration(text, id);
  bytes->append(text, kGenerationSize);
}

void EncodePast(const ClonedPast& past, std::string* bytes) {
  PutVarint64(bytes, past.version);
  PutVarint64(bytes, past.expired_by_ms);
  EncodeId(past.parent, bytes);
  PutVarint32(bytes, static_cast<uint32_t>(past.ancestry.size()));
  for (const NamespaceFork& fork : past.ancestry) {
    PutVarint32(bytes, fork.generation);
    PutVarint32(bytes, fork.parent);
    PutVarint64(bytes, fork.fork_point);
    PutVarint64(bytes, fork.expired_by_ms);
  }
}

// The ancestry has to be the chain of the parent's ancestors, from the oldest one on.
bool DecodePast(ByteReader* reader, ClonedPast* past) {
  uint32_t count = 0;
  if (!reader->ReadVarint64(&past->version) || !reader->ReadVarint64(&past->expired_by_ms) ||
      past->version > kMaxSequence || reader->rest().size() < kGenerationSize) {
    return false;
  }
  past->parent = GenerationOf(reader->rest());
  *reader = ByteReader(reader->rest().substr(kGenerationSize));
  if (!reader->ReadVarint32(&count) || count > kMaxCloneDepth) return false;
  for (; count > 0; --count) {
    NamespaceFork fork;
    if (!reader->ReadVarint32(&fork.generation) || !reader->ReadVarint32(&fork.parent) ||
        !reader->ReadVarint64(&fork.fork_point) || !reader->ReadVarint64(&fork.expired_by_ms) ||
        fork.parent >= fork.generation || fork.fork_point > kMaxSequence) {
      return false;
    }
    if (!past->ancestry.empty() && fork.parent != past->ancestry.back().generation) return false;
    past->ancestry.push_back(fork);
  }
  return past->ancestry.empty() || past->ancestry.back().generation == past->parent;
}

bool ReadEviction(ByteReader* reader, EvictionRule* rule) {
  uint8_t byte = 0;
  if (!reader->ReadByte(&byte)) return false;
  const uint8_t order = byte & ~kVolatileOnly;
  if (order == 0 || order > static_cast<uint8_t>(EvictionOrder::kRandom)) return false;
  *rule = {static_cast<EvictionOrder>(order), (byte & kVolatileOnly) != 0};
  return true;
}

bool ReadGroups(ByteReader* reader, KeyGrouping* grouping) {
  uint8_t kind = 0;
  uint8_t delimiter = 0;
  if (!reader->ReadByte(&kind) || !reader->ReadByte(&delimiter)) return false;
  grouping->kind = static_cast<KeyGrouping::Kind>(kind);
  grouping->delimiter = static_cast<char>(delimiter);
  return grouping->kind == KeyGrouping::Kind::kDelimiter ||
         (grouping->kind == KeyGrouping::Kind::kTogether && delimiter == 0);
}

// Takes the flag out of the byte of the sync mode, and returns whether it was there.
bool TakeFlag(uint8_t flag, uint8_t* byte) {
  const bool is_set = (*byte & flag) != 0;
  *byte = static_cast<uint8_t>(*byte & ~flag);
  return is_set;
}

}  // namespace

void PutCompression(const Compression& compression, std::string* bytes) {
  bytes->push_back(static_cast<char>(compression.method));
  bytes->push_back(static_cast<char>(compression.level));
}

bool ReadCompression(ByteReader* reader, Compression* compression) {
  uint8_t method = 0;
  if (!reader->ReadByte(&method) || !reader->ReadByte(&compression->level)) return false;
  compression->method = static_cast<CompressionMethod>(method);
  if (compression->method != CompressionMethod::kZstd)
    return method <= static_cast<uint8_t>(CompressionMethod::kLz4) && compression->level == 0;
  return compression->level >= 1 && compression->level <= kHighestZstdLevel;
}

void EncodeDescription(const NamespaceDescription& space, std::string* bytes) {
  PutLengthPrefixed(bytes, space.name);
  PutVarint64(bytes, space.options.max_bytes);
  PutVarint64(bytes, space.options.max_keys);
  PutVarint64(bytes, space.options.default_expiry_ms);
  const std::optional<Durability>& sync = space.options.sync;
  const std::optional<HistoryLimits>& history = space.options.history;
  const std::optional<Compression>& compression = space.options.compression;
  const EvictionRule& eviction = space.options.eviction;
  const KeyGrouping& grouping = space.options.grouping;
  bytes->push_back(static_cast<char>(
      (sync ? 1 + static_cast<uint8_t>(*sync) : kStoresMode) | (history ? kHasHistory : 0) |
      (eviction.on() ? kHasEviction : 0) | (compression ? kHasCompression : 0) |
      (grouping.declared() ? kHasGroups : 0)));
  PutVarint64(bytes, space.options.value_separation_size);
  if (history) {
    PutVarint64(bytes, history->time_ms);
    PutVarint64(bytes, history->bytes);
  }
  if (compression) PutCompression(*compression, bytes);
  if (eviction.on()) {
    bytes->push_back(static_cast<char>(static_cast<uint8_t>(eviction.order) |
                                       (eviction.volatile_only ? kVolatileOnly : 0)));
  }
  if (!grouping.declared()) return;
  bytes->push_back(static_cast<char>(grouping.kind));
  bytes->push_back(grouping.delimiter);
}

bool DecodeDescription(ByteReader* reader, NamespaceDescription* space) {
  std::string_view name;
  uint8_t sync = 0;
  NamespaceOptions& options = space->options;
  if (!reader->ReadLengthPrefixed(&name) || !reader->ReadVarint64(&options.max_bytes) ||
      !reader->ReadVarint64(&options.max_keys) ||
      !reader->ReadVarint64(&options.default_expiry_ms) || !reader->ReadByte(&sync) ||
      !reader->ReadVarint64(&options.value_separation_size)) {
    return false;
  }
  options.history.reset();
  if (TakeFlag(kHasHistory, &sync)) {
    HistoryLimits& history = options.history.emplace();
    if (!reader->ReadVarint64(&history.time_ms) || !reader->ReadVarint64(&history.bytes))
      return false;
  }
  options.compression.reset();
  if (TakeFlag(kHasCompression, &sync) && !ReadCompression(reader, &options.compression.emplace()))
    return false;
  options.eviction = EvictionRule();
  if (TakeFlag(kHasEviction, &sync) && !ReadEviction(reader, &options.eviction)) return false;
  options.grouping = KeyGrouping();
  if (TakeFlag(kHasGroups, &sync) && !ReadGroups(reader, &options.grouping)) return false;
  if (name.size() > kMaxNamespaceName || sync > 1 + static_cast<uint8_t>(Durability::kNone))
    return false;
  space->name = name;
  options.sync.reset();
  if (sync != kStoresMode) options.sync = static_cast<Durability>(sync - 1);
  return true;
}

std::string EncodeNamespaceChange(const NamespaceChange& change) {
  std::string value(1, change.past ? kCloneOfPast : static_cast<char>(change.verb));
  switch (change.verb) {
    case NamespaceChange::Verb::kCreate:
      EncodeId(change.generation, &value);
      EncodeDescription(change.space, &value);
      break;
    case NamespaceChange::Verb::kAlter:
      EncodeDescription(change.space, &value);
      break;
    case NamespaceChange::Verb::kDrop:
      break;
    case NamespaceChange::Verb::kSwap:
      EncodeId(change.other, &value);
      break;
    case NamespaceChange::Verb::kClone:
      EncodeId(change.generation, &value);
      EncodeId(change.other, &value);
      if (change.past) EncodePast(*change.past, &value);
      EncodeDescription(change.space, &value);
      break;
  }
  return value;
}

std::optional<NamespaceChange> DecodeNamespaceChange(const RecordView& record) {
  if (record.key.size() != kGenerationSize || record.value.empty()) return std::nullopt;
  NamespaceChange change;
  change.space.id = GenerationOf(record.key);
  const bool is_of_past = record.value[0] == kCloneOfPast;
  change.verb = is_of_past ? NamespaceChange::Verb::kClone
                           : static_cast<NamespaceChange::Verb>(record.value[0]);
  std::string_view rest = record.value.substr(1);
  const auto take_number = [&rest](uint32_t* number) {
    if (rest.size() < kGenerationSize) return false;
    *number = GenerationOf(rest);
    rest.remove_prefix(kGenerationSize);
    return true;
  };
  const bool clones = change.verb == NamespaceChange::Verb::kClone;
  if ((clones || change.verb == NamespaceChange::Verb::kCreate) && !take_number(&change.generation))
    return std::nullopt;
  if ((clones || change.verb == NamespaceChange::Verb::kSwap) && !take_number(&change.other))
    return std::nullopt;
  ByteReader reader(rest);
  switch (change.verb) {
    case NamespaceChange::Verb::kCreate:
    case NamespaceChange::Verb::kAlter:
    case NamespaceChange::Verb::kClone:
      if (is_of_past && !DecodePast(&reader, &change.past.emplace())) return std::nullopt;
      if (!DecodeDescription(&reader, &change.space)) return std::nullopt;
      break;
    case NamespaceChange::Verb::kDrop:
    case NamespaceChange::Verb::kSwap:
      break;
    default:
      return std::nullopt;
  }
  if (!reader.empty()) return std::nullopt;
  return change;
}

}  // namespace varve
