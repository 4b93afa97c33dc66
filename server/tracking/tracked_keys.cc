#include "server/tracking/tracked_keys.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

size_t BytesOf(std::string_view key, size_t clients) {
  return TrackedKeys::kEntryBytes + key.size() + (clients - 1) * sizeof(uint64_t);
}

}  // namespace

void TrackedKeys::Add(NamespaceId space, std::string_view key, uint64_t client) {
  Space& in = spaces_[space];
  auto entry = in.keys.lower_bound(key);
  const bool is_new = entry == in.keys.end() || entry->first != key;
  if (is_new) entry = in.keys.emplace_hint(entry, std::string(key), ClientIds());
  ClientIds& clients = entry->second;
  const auto place = std::lower_bound(clients.begin(), clients.end(), client);
  if (place != clients.end() && *place == client) return;
  clients.insert(place, client);
  const size_t bytes = is_new ? BytesOf(key, 1) : sizeof(uint64_t);
  keys_ += is_new ? 1 : 0;
  ++items_;
  ++in.items;
  bytes_ += bytes;
  in.bytes += bytes;
}

TrackedKeys::Entry TrackedKeys::Remove(Space* space, Keys::iterator entry) {
  Entry removed{entry->first, std::move(entry->second)};
  const size_t items = removed.clients.size();
  const size_t bytes = BytesOf(removed.key, items);
  VARVE_ASSERT(items > 0 && space->items >= items && space->bytes >= bytes);
  space->keys.erase(entry);
  space->items -= items;
  space->bytes -= bytes;
  --keys_;
  items_ -= items;
  bytes_ -= bytes;
  return removed;
}

TrackedKeys::ClientIds TrackedKeys::Take(NamespaceId space, std::string_view key) {
  const auto in = spaces_.find(space);
  if (in == spaces_.end()) return {};
  const auto entry = in->second.keys.find(key);
  if (entry == in->second.keys.end()) return {};
  ClientIds clients = Remove(&in->second, entry).clients;
  if (in->second.keys.empty()) spaces_.erase(in);
  return clients;
}

bool TrackedKeys::TakeRange(NamespaceId space, std::string_view begin, std::string_view end,
                            size_t most, std::vector<Entry>* taken) {
  const auto in = spaces_.find(space);
  if (in == spaces_.end()) return true;
  Keys& keys = in->second.keys;
  const auto first = keys.lower_bound(begin);
  const auto is_in_range = [&](Keys::iterator entry) {
    return entry != keys.end() && (end.empty() || entry->first < end);
  };
  size_t count = 0;
  for (auto entry = first; is_in_range(entry); ++entry) {
    if (++count > most) return false;
  }
  for (; count > 0; --count) taken->push_back(Remove(&in->second, keys.lower_bound(begin)));
  if (keys.empty()) spaces_.erase(in);
  return true;
}

TrackedKeys::Space TrackedKeys::TakeSpace(NamespaceId space) {
  const auto found = spaces_.find(space);
  if (found == spaces_.end()) return {};
  Space taken = std::move(found->second);
  spaces_.erase(found);
  keys_ -= taken.keys.size();
  items_ -= taken.items;
  bytes_ -= taken.bytes;
  VARVE_ASSERT(!spaces_.empty() || (keys_ == 0 && items_ == 0 && bytes_ == 0));
  return taken;
}

std::optional<TrackedKeys::Entry> TrackedKeys::TakeNext() {
  if (spaces_.empty()) return std::nullopt;
  auto in = spaces_.lower_bound(next_space_);
  if (in != spaces_.end() && in->first == next_space_ &&
      in->second.keys.lower_bound(next_key_) == in->second.keys.end())
    ++in;
  if (in == spaces_.end()) in = spaces_.begin();
  if (in->first != next_space_) next_key_.clear();
  Keys& keys = in->second.keys;
  auto entry = keys.lower_bound(next_key_);
  if (entry == keys.end()) entry = keys.begin();  // once around in the only one
  Entry taken = Remove(&in->second, entry);
  next_space_ = in->first;
  next_key_ = taken.key + '\0';
  if (keys.empty()) spaces_.erase(in);
  return taken;
}

}  // namespace varve
