#include "unit-tests/crash/contents.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve::testing {
namespace {

constexpr int kKeys = 60;  // that are read one by one

std::string Shown(std::string_view value) {
  return fmt::format("{} ({} bytes)", value.substr(0, 24), value.size());
}

struct ShownEntry {
  std::string value;
  uint64_t expiry_ms;
  std::string metadata;
};
using ShownKeys = std::map<std::string, ShownEntry, std::less<>>;

class SpaceReader {
 public:
  SpaceReader(StorageEngine* store, NamespaceId space, const SpaceContents& contents,
              const Known& known)
      : store_(*store),
        space_(space),
        contents_(contents),
        known_(known),
        now_ms_(store->NowMillis()) {}

  absl::Status Run(std::vector<Value>* gone) {
    VARVE_RETURN_IF_ERROR(Scan());
    VARVE_RETURN_IF_ERROR(CompareKeys(gone));
    VARVE_RETURN_IF_ERROR(ScanBackwards());
    VARVE_RETURN_IF_ERROR(GetEach());
    return CheckCount();
  }

 private:
  absl::Status Scan() {
    const auto iterator = store_.NewIterator({.space = space_}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      shown_[std::string(iterator->key())] = {std::string(iterator->value()), iterator->expiry_ms(),
                                              std::string(iterator->metadata())};
    }
    return iterator->status();
  }

  absl::Status CompareKeys(std::vector<Value>* gone) const {
    for (const auto& [key, entry] : contents_.keys) {
      const auto shown = shown_.find(key);
      const Presence presence = PresenceOf(entry, known_, now_ms_);
      if (shown == shown_.end()) {
        if (presence == Presence::kThere)
          return WrongAnswer(fmt::format("{} is missing in a scan", key));
        if (gone != nullptr) gone->push_back(entry.value);
        continue;
      }
      if (presence == Presence::kGone) {
        return WrongAnswer(fmt::format("a scan shows {}, which expired at {}, at {}", key,
                                       entry.expiry_ms, now_ms_));
      }
      if (shown->second.value != *entry.value) {
        return WrongAnswer(
            fmt::format("{} has {}, not {}", key, Shown(shown->second.value), Shown(*entry.value)));
      }
      if (shown->second.expiry_ms != entry.expiry_ms) {
        return WrongAnswer(
            fmt::format("{} expires at {}, not {}", key, shown->second.expiry_ms, entry.expiry_ms));
      }
      if (shown->second.metadata != entry.metadata) {
        return WrongAnswer(fmt::format("{} has the metadata {}, not {}", key,
                                       Shown(shown->second.metadata), Shown(entry.metadata)));
      }
    }
    for (const auto& [key, entry] : shown_) {
      if (!contents_.keys.contains(key)) {
        return WrongAnswer(fmt::format("a scan shows {}, which should not be there", key));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ScanBackwards() const {
    const auto iterator = store_.NewIterator({.space = space_}, {}, {}, nullptr);
    iterator->SeekToLast();
    for (auto entry = shown_.rbegin(); entry != shown_.rend(); ++entry) {
      VARVE_RETURN_IF_ERROR(iterator->status());
      if (!iterator->Valid() || iterator->key() != entry->first ||
          iterator->value() != entry->second.value) {
        return WrongAnswer(fmt::format("a scan backwards does not show {}", entry->first));
      }
      iterator->Prev();
    }
    VARVE_RETURN_IF_ERROR(iterator->status());
    if (!iterator->Valid()) return absl::OkStatus();
    return WrongAnswer(
        fmt::format("a scan backwards shows {} before the first key", iterator->key()));
  }

  absl::Status GetEach() const {
    std::string value;
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = fmt::format("key{}", i);
      VARVE_ASSIGN_OR_RETURN(const ReadResult result,
                             store_.Get({.space = space_, .with_metadata = true}, key, &value));
      const auto entry = contents_.keys.find(key);
      VARVE_RETURN_IF_ERROR(CheckAnswer(key, result, value,
                                        entry == contents_.keys.end() ? nullptr : &entry->second,
                                        known_, now_ms_));
      if (result.found && result.MetadataView() != entry->second.metadata)
        return WrongAnswer(fmt::format("{} reads other metadata", key));
      if (result.found != shown_.contains(key)) {
        return WrongAnswer(fmt::format("{} is {}, and a scan says otherwise", key,
                                       result.found ? "there" : "missing"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckCount() const {
    uint64_t bytes = 0;
    for (const auto& [key, entry] : shown_)
      bytes += key.size() + entry.value.size() + entry.metadata.size();
    VARVE_ASSIGN_OR_RETURN(const CountResult count, store_.Count({.space = space_}, {}, {}));
    if (count.keys == shown_.size() && count.bytes == bytes) return absl::OkStatus();
    return WrongAnswer(fmt::format("{} keys of {} bytes are counted, not {} of {}", count.keys,
                                   count.bytes, shown_.size(), bytes));
  }

  StorageEngine& store_;
  const NamespaceId space_;
  const SpaceContents& contents_;
  const Known& known_;
  const uint64_t now_ms_;
  ShownKeys shown_;
};

absl::Status CheckNamespaces(const StorageEngine& store, const Contents& contents) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store.Namespaces());
  for (const NamespaceDescription& space : list.namespaces) {
    const auto expected = contents.spaces.find(space.id);
    if (expected == contents.spaces.end()) {
      return WrongAnswer(
          fmt::format("namespace {} is there, which was dropped or not created yet", space.id));
    }
    const NamespaceDescription& description = expected->second.description;
    if (space.name != description.name || space.options != description.options) {
      return WrongAnswer(fmt::format("namespace {} is '{}', not '{}', or has other options",
                                     space.id, space.name, description.name));
    }
  }
  if (list.namespaces.size() != contents.spaces.size())
    return WrongAnswer("a namespace is missing");
  if (list.next_id == contents.next_named) return absl::OkStatus();
  return WrongAnswer(
      fmt::format("the next namespace is {}, not {}", list.next_id, contents.next_named));
}

absl::Status CheckMissing(StorageEngine* store, NamespaceId space) {
  std::string value;
  const absl::Status missing = store->Get({.space = space}, "key", &value).status();
  if (missing.ok())
    return WrongAnswer("a namespace that was dropped, or not created yet, is there");
  return IsNoSuchNamespace(missing) ? absl::OkStatus() : missing;
}

// Keys with an expiry may have been removed before the version.
absl::Status CheckPastKeys(StorageEngine* store, const ReadOptions& options,
                           const SpaceContents& then) {
  const auto iterator = store->NewIterator(options, {}, {}, nullptr);
  std::set<std::string, std::less<>> shown;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    const auto entry = then.keys.find(iterator->key());
    if (entry == then.keys.end() || iterator->value() != *entry->second.value ||
        iterator->expiry_ms() != entry->second.expiry_ms ||
        iterator->metadata() != entry->second.metadata) {
      return WrongAnswer(
          fmt::format("{} is {}, which it was not", iterator->key(), Shown(iterator->value())));
    }
    shown.emplace(iterator->key());
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  for (const auto& [key, entry] : then.keys) {
    if (entry.expiry_ms == kNoExpiry && !shown.contains(key))
      return WrongAnswer(fmt::format("{} is missing", key));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPast(StorageEngine* store, SequenceNumber version, const Contents& then) {
  for (const auto& [id, space] : then.spaces) {
    const auto snapshot = store->SnapshotAt(id, version);
    if (const auto first = FirstOfTrimmed(snapshot.status()); first && *first > version) continue;
    VARVE_RETURN_IF_ERROR(snapshot.status());
    const absl::Status status =
        CheckPastKeys(store, {.snapshot = snapshot->get(), .space = id}, space);
    if (absl::IsFailedPrecondition(status)) {
      return WrongAnswer(fmt::format("namespace {} at version {}: {}", id, version,
                                     std::string(status.message())));
    }
    VARVE_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status WrongAnswer(const std::string& what) {
  return absl::FailedPreconditionError("wrong answer: " + what);
}

uint64_t Known::LatestSince(uint64_t moment) const {
  uint64_t latest = 0;
  for (const Clock& clock : clocks) {
    if (clock.moment >= moment) latest = std::max(latest, clock.instant_ms);
  }
  return latest;
}

Presence PresenceOf(const Entry& entry, const Known& known, uint64_t now_ms) {
  if (entry.expiry_ms == kNoExpiry) return Presence::kThere;
  if (entry.expiry_ms <= now_ms || known.gone.contains(entry.value)) return Presence::kGone;
  return entry.expiry_ms <= known.LatestSince(entry.moment) ? Presence::kEither : Presence::kThere;
}

absl::Status CheckAnswer(std::string_view key, const ReadResult& read, std::string_view value,
                         const Entry* entry, const Known& known, uint64_t now_ms) {
  const Presence presence = entry == nullptr ? Presence::kGone : PresenceOf(*entry, known, now_ms);
  if (read.found ? presence == Presence::kGone : presence == Presence::kThere) {
    return WrongAnswer(
        fmt::format("{} is {} at {}", key, read.found ? "there" : "missing", now_ms));
  }
  if (read.found && value != *entry->value) {
    return WrongAnswer(fmt::format("{} reads {}, not {}", key, Shown(value), Shown(*entry->value)));
  }
  if (read.found && read.expiry_ms != entry->expiry_ms) {
    return WrongAnswer(
        fmt::format("{} is to expire at {}, not {}", key, read.expiry_ms, entry->expiry_ms));
  }
  return absl::OkStatus();
}

absl::Status CheckContents(StorageEngine* store, const Contents& contents, const Known& known,
                           std::vector<Value>* gone) {
  // Once the log has failed, the list is of what may never get to disk.
  const absl::Status listed = CheckNamespaces(*store, contents);
  if (!listed.ok() && store->log_status().ok()) return listed;
  for (const auto& [id, space] : contents.spaces) {
    const absl::Status status = SpaceReader(store, id, space, known).Run(gone);
    if (absl::IsFailedPrecondition(status)) {
      return WrongAnswer(fmt::format("namespace {}: {}", id, std::string(status.message())));
    }
    VARVE_RETURN_IF_ERROR(status);
  }
  if (!contents.spaces.contains(1)) VARVE_RETURN_IF_ERROR(CheckMissing(store, 1));
  for (NamespaceId id = kFirstNamedNamespace; id < contents.next_named; ++id) {
    if (!contents.spaces.contains(id)) VARVE_RETURN_IF_ERROR(CheckMissing(store, id));
  }
  return absl::OkStatus();
}

}  // namespace varve::testing
