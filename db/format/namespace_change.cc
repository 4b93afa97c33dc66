#include "db/format/namespace_change.h"

namespace varve {
namespace {

constexpr uint8_t kStoresMode = 0;

void EncodeId(NamespaceId id, std::string* bytes) {
  char text[kGenerationSize];
  EncodeGeneration(text, id);
  bytes->append(text, kGenerationSize);
}

}  // namespace

void EncodeDescription(const NamespaceDescription& space, std::string* bytes) {
  PutLengthPrefixed(bytes, space.name);
  PutVarint64(bytes, space.options.max_bytes);
  PutVarint64(bytes, space.options.max_keys);
  PutVarint64(bytes, space.options.default_expiry_ms);
  const std::optional<Durability>& sync = space.options.sync;
  bytes->push_back(static_cast<char>(sync ? 1 + static_cast<uint8_t>(*sync) : kStoresMode));
  PutVarint64(bytes, space.options.value_separation_size);
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
  if (name.size() > kMaxNamespaceName || sync > 1 + static_cast<uint8_t>(Durability::kNone))
    return false;
  space->name = name;
  options.sync.reset();
  if (sync != kStoresMode) options.sync = static_cast<Durability>(sync - 1);
  return true;
}

std::string EncodeNamespaceChange(const NamespaceChange& change) {
  std::string value(1, static_cast<char>(change.verb));
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
      EncodeDescription(change.space, &value);
      break;
  }
  return value;
}

std::optional<NamespaceChange> DecodeNamespaceChange(const RecordView& record) {
  if (record.key.size() != kGenerationSize || record.value.empty()) return std::nullopt;
  NamespaceChange change;
  change.space.id = GenerationOf(record.key);
  change.verb = static_cast<NamespaceChange::Verb>(record.value[0]);
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
