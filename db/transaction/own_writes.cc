#include "db/transaction/own_writes.h"

#include <utility>

#include "util/base/assert.h"

namespace varve {

void OwnWrites::Set(std::string_view key, Write write, NamespaceId space) {
  auto& keys = spaces_[space].keys;
  const size_t bytes = BytesOf(key, write);
  const auto found = keys.find(key);
  if (found == keys.end()) {
    keys.emplace(std::string(key), std::move(write));
  } else {
    VARVE_ASSERT(bytes_ >= BytesOf(key, found->second));
    bytes_ -= BytesOf(key, found->second);
    // The two become one write: of the value, unless neither of them was.
    if (!write.deleted && write.cause != found->second.cause) write.cause = WriteCause::kWrite;
    found->second = std::move(write);
  }
  bytes_ += bytes;
}

void OwnWrites::Put(std::string_view key, std::string_view value, NamespaceId space,
                    const PutExtras& extras) {
  VARVE_ASSERT(extras.expiry_ms != kUsualExpiry);
  Set(key,
      {.deleted = false,
       .value = std::string(value),
       .metadata = std::string(extras.metadata),
       .expiry_ms = extras.expiry_ms,
       .cause = extras.cause},
      space);
}

void OwnWrites::Delete(std::string_view key, NamespaceId space, WriteCause cause) {
  Set(key, {.deleted = true, .value = {}, .metadata = {}, .cause = cause}, space);
}

void OwnWrites::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  if (!end.empty() && end <= begin) return;
  Space& in = spaces_[space];
  const auto last = end.empty() ? in.keys.end() : in.keys.lower_bound(end);
  for (auto key = in.keys.lower_bound(begin); key != last; key = in.keys.erase(key)) {
    VARVE_ASSERT(bytes_ >= BytesOf(key->first, key->second));
    bytes_ -= BytesOf(key->first, key->second);
  }
  if (in.cleared) return;
  VARVE_ASSERT(bytes_ >= in.hidden.bytes());
  bytes_ -= in.hidden.bytes();
  in.hidden.Add(begin, end);
  bytes_ += in.hidden.bytes();
}

void OwnWrites::ClearNamespace(NamespaceId space) {
  DeleteRange({}, {}, space);
  Space& in = spaces_[space];
  VARVE_ASSERT(in.keys.empty());
  VARVE_ASSERT(bytes_ >= in.hidden.bytes());
  bytes_ -= in.hidden.bytes();
  in.hidden.Clear();
  in.cleared = true;
}

void OwnWrites::CreateNamespace(const NamespaceDescription& space) {
  VARVE_ASSERT(Find(space.id) == nullptr || !Find(space.id)->created);
  created_.push_back(space);
  ClearNamespace(space.id);
  spaces_[space.id].created = true;
  bytes_ += sizeof(NamespaceDescription) + space.name.size();
}

void OwnWrites::SwapNamespaces(NamespaceId one, NamespaceId other) {
  swaps_.emplace_back(one, other);
  const NamespaceId origin_of_one = Origin(one);
  origins_[one] = Origin(other);
  origins_[other] = origin_of_one;
  bytes_ += kBytesPerWrite;
}

NamespaceId OwnWrites::Origin(NamespaceId space) const {
  const auto swapped = origins_.find(space);
  return swapped == origins_.end() ? space : swapped->second;
}

const OwnWrites::Space* OwnWrites::Find(NamespaceId space) const {
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? nullptr : &found->second;
}

CountResult OwnWrites::CountPuts(std::optional<NamespaceId> space) const {
  CountResult puts;
  for (const auto& [id, written] : spaces_) {
    if (space.has_value() && id != *space) continue;
    for (const auto& [key, write] : written.keys) {
      if (write.deleted) continue;
      ++puts.keys;
      puts.bytes += key.size() + write.value.size() + write.metadata.size();
    }
  }
  return puts;
}

void OwnWrites::AddTo(WriteBatch* batch) const {
  for (const NamespaceDescription& space : created_) batch->CreateNamespace(space);
  for (const auto& [id, space] : spaces_) {
    VARVE_ASSERT(!space.cleared || space.hidden.empty());
    VARVE_ASSERT(!space.created || space.cleared);
    if (space.cleared && !space.created) batch->ClearNamespace(id);
    for (const auto& [begin, end] : space.hidden.ranges()) batch->DeleteRange(begin, end, id);
    for (const auto& [key, write] : space.keys) {
      if (write.deleted) {
        batch->Delete(key, id, write.cause);
      } else {
        batch->Put(key, write.value, {write.expiry_ms, write.metadata, write.cause}, id);
      }
    }
  }
  for (const auto& [one, other] : swaps_) batch->SwapNamespaces(one, other);
}

}  // namespace varve
