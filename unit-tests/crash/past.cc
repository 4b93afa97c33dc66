#include "unit-tests/crash/past.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/changes.h"

namespace varve::testing {
namespace {

using Kind = ChangeOperation::Kind;

constexpr int kPastKeys = 60;

const Entry* EntryAt(const Contents& contents, NamespaceId space, std::string_view key) {
  const auto found = contents.spaces.find(space);
  if (found == contents.spaces.end()) return nullptr;
  const auto entry = found->second.keys.find(key);
  return entry == found->second.keys.end() ? nullptr : &entry->second;
}

// What a key had from a version on, until the moment before.
struct Moment {
  SequenceNumber version;
  const Entry* entry;
  bool is_opaque;
};

std::vector<Moment> MomentsOf(const KnownPast& past, NamespaceId space, std::string_view key) {
  std::vector<Moment> moments;
  past.history.ShowBack(past.last, [&](const History::State& state) {
    moments.push_back({state.version, EntryAt(*state.contents, space, key), state.is_opaque});
    return true;
  });
  return moments;
}

bool Expires(const Entry* entry) { return entry != nullptr && entry->expiry_ms != kNoExpiry; }

// Every event is a change that the key went through.
absl::Status CheckEvents(const std::vector<KeyEvent>& events, const std::vector<Moment>& moments) {
  SequenceNumber newer = kMaxSequence;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const KeyEvent& event = events[i];
    if (event.kind == Kind::kExpired) continue;  // its version is about right
    if (event.version >= newer)
      return WrongAnswer(fmt::format("versions are out of order at {}", event.version));
    newer = event.version;
    const auto now = std::find_if(moments.begin(), moments.end(), [&](const Moment& moment) {
      return moment.version <= event.version;
    });
    if (now == moments.end()) continue;
    const bool is_within_opaque =
        now != moments.begin() && std::prev(now)->is_opaque && now->version != event.version;
    if (is_within_opaque || Expires(now->entry)) continue;
    if (event.has_value != (now->entry != nullptr) ||
        (event.has_value && event.value_size != now->entry->value->size())) {
      return WrongAnswer(fmt::format("version {} {} it", event.version,
                                     event.has_value ? "did not put" : "did not remove"));
    }
  }
  return absl::OkStatus();
}

// Every change that the key went through behind `first` is an event.
absl::Status CheckToldChanges(const std::vector<KeyEvent>& events,
                              const std::vector<Moment>& moments, SequenceNumber first) {
  for (size_t i = 0; i + 1 < moments.size() && moments[i].version > first; ++i) {
    const Moment& after = moments[i];
    const Moment& before = moments[i + 1];
    const Value none;
    const Value& was = before.entry == nullptr ? none : before.entry->value;
    const Value& is = after.entry == nullptr ? none : after.entry->value;
    if (after.is_opaque || was == is || Expires(before.entry) || Expires(after.entry)) continue;
    const bool is_told = std::any_of(events.begin(), events.end(), [&](const KeyEvent& event) {
      return event.version == after.version && event.has_value == (is != nullptr);
    });
    if (!is_told) {
      return WrongAnswer(fmt::format("version {} {} it, and nothing tells of it", after.version,
                                     is == nullptr ? "removed" : "put"));
    }
  }
  return absl::OkStatus();
}

// The newest value that a missing key had.
struct Candidate {
  const Entry* entry = nullptr;
  SequenceNumber gone_at = kNoSequence;
  bool is_unsure = false;  // there may be a newer one
};

Candidate FindCandidate(const KnownPast& past, NamespaceId space, std::string_view key) {
  Candidate candidate;
  past.history.ShowBack(past.last, [&](const History::State& state) {
    candidate.entry = EntryAt(*state.contents, space, key);
    if (candidate.entry != nullptr) return false;
    candidate.is_unsure |= state.is_opaque;
    candidate.gone_at = state.version;
    return true;
  });
  return candidate;
}

}  // namespace

absl::Status CheckKeyHistory(StorageEngine* store, const KnownPast& past, NamespaceId space,
                             std::string_view key) {
  VARVE_ASSIGN_OR_RETURN(const KeyHistory told, store->HistoryOf(space, key));
  VARVE_ASSIGN_OR_RETURN(const SequenceNumber first, store->FirstVersion(space));
  const std::vector<Moment> moments = MomentsOf(past, space, key);
  absl::Status status = CheckEvents(told.events, moments);
  if (status.ok()) status = CheckToldChanges(told.events, moments, first);
  const Entry* const now = moments.front().entry;
  if (status.ok() && !Expires(now) && (told.state == KeyState::kFound) != (now != nullptr))
    status = WrongAnswer("it has another state");
  if (status.ok()) return status;
  return WrongAnswer(fmt::format("the history of {} in namespace {} (first {}): {}", key, space,
                                 first, std::string(status.message())));
}

absl::Status CheckRemoved(StorageEngine* store, const KnownPast& past, NamespaceId space,
                          std::string_view lower, std::string_view upper,
                          const RemovedKeys& removed) {
  VARVE_ASSIGN_OR_RETURN(const SequenceNumber first, store->FirstVersion(space));
  std::map<std::string, const RemovedKey*> found;
  for (const RemovedKey& each : removed.keys) found[each.key] = &each;
  const uint64_t now_ms = store->NowMillis();
  const Contents& contents = *past.history.At(past.last);
  for (int i = 0; i < kPastKeys; ++i) {
    const std::string key = fmt::format("key{}", i);
    const auto each = found.find(key);
    const RemovedKey* const back = each == found.end() ? nullptr : each->second;
    if (back != nullptr) found.erase(each);
    if (key < lower || (!upper.empty() && key >= upper)) {
      if (back != nullptr) return WrongAnswer(key + " is outside of the range");
      continue;
    }
    if (const Entry* const now = EntryAt(contents, space, key)) {
      if (back != nullptr && PresenceOf(*now, past.known, now_ms) == Presence::kThere)
        return WrongAnswer(key + " is there, and is to come back");
      continue;
    }
    const Candidate candidate = FindCandidate(past, space, key);
    if (candidate.is_unsure || Expires(candidate.entry)) continue;
    if (candidate.entry == nullptr) {
      if (back != nullptr) return WrongAnswer(key + " never was there, and is to come back");
      continue;
    }
    if (back == nullptr) {
      if (candidate.gone_at <= first) continue;
      return WrongAnswer(
          fmt::format("{} of namespace {} went at {}, first is {}: it does not come "
                      "back",
                      key, space, candidate.gone_at, first));
    }
    if (back->value != *candidate.entry->value || back->metadata != candidate.entry->metadata ||
        back->expiry_ms != kNoExpiry) {
      return WrongAnswer(fmt::format(
          "{} of namespace {} does not come back as it was before {}: {} instead of {} bytes, "
          "metadata {} instead of {}, expiry {}, first is {}",
          key, space, candidate.gone_at, back->value.size(), candidate.entry->value->size(),
          back->metadata.size(), candidate.entry->metadata.size(), back->expiry_ms, first));
    }
  }
  return found.empty() ? absl::OkStatus() : WrongAnswer(found.begin()->first + " is to come back");
}

}  // namespace varve::testing
