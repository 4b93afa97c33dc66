#include "db/hbase/space_catalog.h"

#include <algorithm>
#include <utility>

#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr uint8_t kSpaceFormat = 1;
constexpr uint8_t kLeftOutElsewhere = 0xff;

bool ReadGrouping(ByteReader* reader, KeyGrouping* grouping) {
  uint8_t kind = 0, delimiter = 0;
  if (!reader->ReadByte(&kind) || !reader->ReadByte(&delimiter) ||
      kind > static_cast<uint8_t>(KeyGrouping::Kind::kDelimiter))
    return false;
  grouping->kind = static_cast<KeyGrouping::Kind>(kind);
  grouping->delimiter = static_cast<char>(delimiter);
  return true;
}

bool IsWithinGenerations(HbaseGeneration generation) {
  return generation > kSystemGeneration && generation <= kLastGeneration;
}

bool ReadSpace(ByteReader* reader, SpaceCatalog::Space* space) {
  return reader->ReadVarint32(&space->description.id) && reader->ReadVarint32(&space->generation) &&
         IsWithinGenerations(space->generation) && DecodeDescription(reader, &space->description);
}

bool ReadPlace(ByteReader* reader, KeyPlace* place) {
  return reader->ReadVarint32(&place->generation) && IsWithinGenerations(place->generation) &&
         ReadGrouping(reader, &place->grouping);
}

// Reads a count, then so many items.
template <typename Item, typename Read>
bool ReadItems(ByteReader* reader, std::vector<Item>* items, Read read) {
  uint32_t count = 0;
  if (!reader->ReadVarint32(&count)) return false;
  for (; count > 0; --count) {
    if (!read(reader, &items->emplace_back())) return false;
  }
  return true;
}

}  // namespace

uint8_t LeftOutByte(const KeyGrouping& grouping) {
  return grouping.kind == KeyGrouping::Kind::kDelimiter ? static_cast<uint8_t>(grouping.delimiter)
                                                        : kLeftOutElsewhere;
}

HbaseTableLayout TableOf(const std::string& table, const KeyGrouping& grouping) {
  switch (grouping.kind) {
    case KeyGrouping::Kind::kNone:
      return {.name = table};
    case KeyGrouping::Kind::kTogether:
      return {.name = table + "-together",
              .split = HbaseTableLayout::Split::kKeyPrefix,
              .prefix_length = kRowPrefixSize};
    case KeyGrouping::Kind::kDelimiter:
      return {.name = fmt::format("{}-group-{:02x}", table, LeftOutByte(grouping)),
              .split = HbaseTableLayout::Split::kDelimited,
              .delimiter = grouping.delimiter};
  }
  return {.name = table};
}

absl::Status CheckGrouping(const KeyGrouping& grouping) {
  if (grouping.kind != KeyGrouping::Kind::kDelimiter || LeftOutByte(grouping) < 0x80)
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a store over HBase takes a byte from 0x00 to 0x7f as the delimiter of groups, and not "
      "0x{:02x}, as HBase's rule for the borders of regions knows no other",
      LeftOutByte(grouping)));
}

SpaceCatalog SpaceCatalog::New() {
  SpaceCatalog catalog;
  catalog.spaces_.push_back({{.id = kDefaultNamespace}, catalog.next_generation_++});
  return catalog;
}

std::string SpaceCatalog::Encode() const {
  std::string bytes(1, static_cast<char>(kSpaceFormat));
  PutVarint32(&bytes, next_generation_);
  PutVarint32(&bytes, next_id_);
  PutVarint32(&bytes, static_cast<uint32_t>(spaces_.size()));
  for (const Space& space : spaces_) {
    PutVarint32(&bytes, space.description.id);
    PutVarint32(&bytes, space.generation);
    EncodeDescription(space.description, &bytes);
  }
  PutVarint32(&bytes, static_cast<uint32_t>(retired_.size()));
  for (const KeyPlace& place : retired_) {
    PutVarint32(&bytes, place.generation);
    bytes.push_back(static_cast<char>(place.grouping.kind));
    bytes.push_back(place.grouping.delimiter);
  }
  return bytes;
}

absl::StatusOr<SpaceCatalog> SpaceCatalog::Decode(std::string_view bytes) {
  SpaceCatalog catalog;
  ByteReader reader(bytes);
  uint8_t format = 0;
  const auto by_id = [](const Space& a, const Space& b) {
    return a.description.id >= b.description.id;
  };
  if (!reader.ReadByte(&format) || format != kSpaceFormat ||
      !reader.ReadVarint32(&catalog.next_generation_) || !reader.ReadVarint32(&catalog.next_id_) ||
      !ReadItems(&reader, &catalog.spaces_, ReadSpace) ||
      !ReadItems(&reader, &catalog.retired_, ReadPlace) || !reader.empty() ||
      std::adjacent_find(catalog.spaces_.begin(), catalog.spaces_.end(), by_id) !=
          catalog.spaces_.end()) {
    return absl::DataLossError(fmt::format("the list of namespaces makes no sense at byte {} of {}",
                                           reader.position(), bytes.size()));
  }
  return catalog;
}

SpaceCatalog::Space* SpaceCatalog::FindMutable(NamespaceId id) {
  const auto found = std::lower_bound(
      spaces_.begin(), spaces_.end(), id,
      [](const Space& space, NamespaceId wanted) { return space.description.id < wanted; });
  return found != spaces_.end() && found->description.id == id ? &*found : nullptr;
}

const SpaceCatalog::Space* SpaceCatalog::Find(NamespaceId id) const {
  return const_cast<SpaceCatalog*>(this)->FindMutable(id);
}

NamespaceList SpaceCatalog::List() const {
  NamespaceList list;
  list.next_id = next_id_;
  for (const Space& space : spaces_) list.namespaces.push_back(space.description);
  return list;
}

absl::Status SpaceCatalog::CheckName(const NamespaceDescription& description) const {
  for (const Space& space : spaces_) {
    const bool is_other = space.description.id != description.id;
    if (is_other && !description.name.empty() && space.description.name == description.name)
      return absl::AlreadyExistsError(
          fmt::format("there is a namespace {} already", description.name));
  }
  return absl::OkStatus();
}

absl::Status SpaceCatalog::CheckOptions(const NamespaceOptions& options) {
  if (!options.has_quota()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a store over HBase keeps no quotas, as several servers write to it at the same time");
}

absl::StatusOr<HbaseGeneration> SpaceCatalog::TakeGeneration() {
  if (next_generation_ >= kLastGeneration) {
    return absl::ResourceExhaustedError(
        "this store has created and emptied namespaces so often that no number is left for the "
        "next one; export its keys into a new table");
  }
  return next_generation_++;
}

absl::Status SpaceCatalog::Create(const NamespaceDescription& description) {
  if (Find(description.id) != nullptr)
    return absl::AlreadyExistsError(fmt::format("there is a namespace {} already", description.id));
  if (description.id >= kFirstNamedNamespace && description.id != next_id_)
    return absl::AlreadyExistsError(
        fmt::format("namespace {} was there before; the next one is {}", description.id, next_id_));
  VARVE_RETURN_IF_ERROR(CheckOptions(description.options));
  VARVE_RETURN_IF_ERROR(CheckName(description));
  if (spaces_.size() >= kMaxNamespaces) {
    return absl::ResourceExhaustedError(
        fmt::format("there are {} namespaces, as many as there may be", kMaxNamespaces));
  }
  VARVE_ASSIGN_OR_RETURN(const HbaseGeneration generation, TakeGeneration());
  if (description.id >= kFirstNamedNamespace) next_id_ = description.id + 1;
  const auto behind = std::find_if(spaces_.begin(), spaces_.end(), [&](const Space& space) {
    return space.description.id > description.id;
  });
  spaces_.insert(behind, {description, generation});
  return absl::OkStatus();
}

absl::Status SpaceCatalog::Alter(const NamespaceDescription& description) {
  Space* const space = FindMutable(description.id);
  if (space == nullptr) return NoSuchNamespace(description.id);
  VARVE_RETURN_IF_ERROR(CheckOptions(description.options));
  VARVE_RETURN_IF_ERROR(CheckName(description));
  if (description.options.grouping != space->description.options.grouping) {
    return absl::FailedPreconditionError(
        "the groups of a namespace are set when it is created, as its keys lie by them; create "
        "another namespace and copy the keys");
  }
  space->description = description;
  return absl::OkStatus();
}

absl::Status SpaceCatalog::Drop(NamespaceId id) {
  const Space* const space = Find(id);
  if (space == nullptr) return NoSuchNamespace(id);
  retired_.push_back(space->place());
  spaces_.erase(spaces_.begin() + (space - spaces_.data()));
  return absl::OkStatus();
}

absl::Status SpaceCatalog::Clear(NamespaceId id) {
  Space* const space = FindMutable(id);
  if (space == nullptr) return NoSuchNamespace(id);
  VARVE_ASSIGN_OR_RETURN(const HbaseGeneration generation, TakeGeneration());
  retired_.push_back(space->place());
  space->generation = generation;
  return absl::OkStatus();
}

void SpaceCatalog::Forget(const KeyPlace& place) { std::erase(retired_, place); }

}  // namespace varve
