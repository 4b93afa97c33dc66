#include "unit-tests/crash/feed_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::testing {
namespace {

using Kind = ChangeOperation::Kind;

// Returns the id of the namespace that has the name.
NamespaceId IdOf(const Contents& contents, const std::string& name) {
  for (const auto& [id, space] : contents.spaces) {
    if (space.description.name == name) return id;
  }
  NamespaceId id = kSelectedNamespace;
  std::from_chars(name.data(), name.data() + name.size(), id);
  return id;
}

}  // namespace

FeedReader::Keys FeedReader::KeysOf(const SpaceContents& space) {
  Keys keys;
  for (const auto& [key, entry] : space.keys)
    keys[key] = {entry.value, entry.metadata, entry.expiry_ms};
  return keys;
}

void FeedReader::StartAt(SequenceNumber position, const History& history) {
  started_ = true;
  saved_ = {.position = position, .spaces = {}};
  for (const auto& [id, space] : history.At(position)->spaces) saved_.spaces[id] = KeysOf(space);
}

absl::Status FeedReader::Compare(NamespaceId id, const Copy& copy, const Contents& contents) {
  static const Keys none;
  static const SpaceContents no_space;
  const auto copied = copy.spaces.find(id);
  const auto held = contents.spaces.find(id);
  const Keys& keys = copied == copy.spaces.end() ? none : copied->second;
  const SpaceContents& space = held == contents.spaces.end() ? no_space : held->second;
  const bool is_same = std::equal(keys.begin(), keys.end(), space.keys.begin(), space.keys.end(),
                                  [](const auto& a, const auto& b) {
                                    return a.first == b.first &&
                                           a.second.expiry_ms == b.second.expiry_ms &&
                                           a.second.metadata == b.second.metadata &&
                                           *a.second.value == *b.second.value;
                                  });
  if (is_same) return absl::OkStatus();
  return WrongAnswer(
      fmt::format("the change feed tells of other keys of namespace {} at {}", id, copy.position));
}

void FeedReader::ApplyOperation(const ChangeOperation& operation, const Contents& names,
                                const Contents& after, Copy* copy) {
  Keys& keys = copy->spaces[operation.space];
  switch (operation.kind) {
    case Kind::kSet:
    case Kind::kExpire:
    case Kind::kMeta:
      keys[operation.key] = {std::make_shared<const std::string>(operation.value),
                             operation.metadata, operation.expiry_ms};
      break;
    case Kind::kDelete:
      keys.erase(operation.key);
      break;
    case Kind::kDeleteRange:
      if (operation.value.empty() || operation.key < operation.value) {
        keys.erase(keys.lower_bound(operation.key),
                   operation.value.empty() ? keys.end() : keys.lower_bound(operation.value));
      }
      break;
    case Kind::kIngest:  // the feed names the first and the last key alone
    case Kind::kClone:   // and the source, but not the version that was cloned
      keys = KeysOf(after.spaces.at(operation.space));
      break;
    case Kind::kFlush:
    case Kind::kCreate:
    case Kind::kDrop:
      keys.clear();
      break;
    case Kind::kSwap:
      std::swap(keys, copy->spaces[IdOf(names, operation.key)]);
      break;
    default:
      break;  // what has expired stays in the history
  }
}

absl::Status FeedReader::Apply(const Change& change, const History& history, Copy* copy) {
  if (change.version <= copy->position)
    return WrongAnswer("a change is told twice, or out of order");
  copy->position = change.version;
  const Contents* const after = history.At(change.version);
  if (change.version > last_known_ || after == nullptr ||
      history.BatchAt(change.version) != change.version) {
    for (const ChangeOperation& operation : change.operations) {
      if (operation.kind != Kind::kExpired) {
        return WrongAnswer(
            fmt::format("the change feed tells of a commit {} that nobody made", change.version));
      }
    }
    return absl::OkStatus();
  }
  std::set<NamespaceId> touched;
  for (const ChangeOperation& operation : change.operations) {
    const Contents* const then = history.Exactly(operation.version);
    const Contents& names = then == nullptr ? *after : *then;
    ApplyOperation(operation, names, *after, copy);
    touched.insert(operation.space);
    if (operation.kind == Kind::kSwap) touched.insert(IdOf(names, operation.key));
  }
  if (random_() % 2 == 0) return absl::OkStatus();
  for (const NamespaceId space : touched) VARVE_RETURN_IF_ERROR(Compare(space, *copy, *after));
  return absl::OkStatus();
}

absl::Status FeedReader::ReadSome(StorageEngine* store, const History& history, bool* at_end) {
  *at_end = false;
  ChangeFilter filter;
  filter.space = std::nullopt;
  Copy copy = saved_;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<ChangeIterator> changes,
                         store->NewChangeIterator(copy.position, filter));
  const size_t most_bytes = random_() % 2 == 0 ? SIZE_MAX : 1 + random_() % 20'000;
  for (uint64_t left = 1 + random_() % 60; left > 0; --left) {
    VARVE_ASSIGN_OR_RETURN(const bool more, changes->Next(most_bytes));
    if (!more) {
      *at_end = most_bytes == SIZE_MAX;
      copy.position = std::max(copy.position, changes->position());
      break;
    }
    VARVE_RETURN_IF_ERROR(Apply(changes->change(), history, &copy));
    told_ = std::max(told_, copy.position);
  }
  const bool is_killed = !*at_end && random_() % 4 == 0;
  if (!is_killed) saved_ = std::move(copy);
  return absl::OkStatus();
}

absl::Status FeedReader::CheckCopy(const History& history) const {
  const Contents* const contents = history.At(std::min(saved_.position, last_known_));
  if (contents == nullptr) return WrongAnswer("the change feed ends in the middle of a batch");
  for (const auto& [id, space] : contents->spaces)
    VARVE_RETURN_IF_ERROR(Compare(id, saved_, *contents));
  return absl::OkStatus();
}

}  // namespace varve::testing
