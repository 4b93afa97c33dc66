// Workload: what it does with the store's past and with its changes.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/crash/workload.h"
#include "util/base/status.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve::testing {
namespace {

constexpr size_t kMostSpaces = 4;
constexpr char kFeed[] = "reader";

}  // namespace

absl::Status Workload::LookBack() {
  if (!store_->log_status().ok()) return absl::OkStatus();
  const uint64_t dice = Dice(20);
  if (dice < 7) return Undelete();
  if (dice < 11) return ClonePast();
  if (dice < 17) return Undrop();
  const absl::Status status =
      CheckKeyHistory(store_.get(), Past(KnownNow()), AnySpace(contents_), Key());
  if (absl::IsFailedPrecondition(status) && store_->log_status().ok()) return status;
  Note(status);
  done_["histories"] += status.ok();
  return absl::OkStatus();
}

// --- What was removed ----------------------------------------------------------------------------

absl::StatusOr<RemovedKeys> Workload::FindRemoved(NamespaceId space, const std::string& lower,
                                                  const std::string& upper) {
  VARVE_ASSIGN_OR_RETURN(RemovedKeys removed,
                         store_->FindRemoved({.space = space, .lower = lower, .upper = upper}));
  const Known known = KnownNow();
  VARVE_RETURN_IF_ERROR(CheckRemoved(store_.get(), Past(known), space, lower, upper, removed));
  return removed;
}

// Up to eleven keys, or one.
absl::Status Workload::Undelete() {
  const NamespaceId space = AnySpace(contents_);
  const std::string lower = Dice(2) == 0 ? Key() : fmt::format("key{}", 1 + Dice(5));
  absl::StatusOr<RemovedKeys> removed =
      FindRemoved(space, lower, Dice(2) == 0 ? lower + '\0' : lower + ':');
  if (absl::IsFailedPrecondition(removed.status()) && store_->log_status().ok())
    return removed.status();
  Note(removed.status());
  if (!removed.ok() || removed->keys.empty() || !store_->log_status().ok()) return absl::OkStatus();
  const SequenceNumber at = last_;
  if (Dice(4) == 0) {
    // Somebody else puts one of them.
    Write other = NewWrite();
    const Value value = NewValue();
    const std::string& key = removed->keys.back().key;
    other.batch.Put(key, *value, space);
    other.next.spaces.at(space).keys[key] = {value, kNoExpiry, history_->moment()};
    VARVE_RETURN_IF_ERROR(Commit(&other, Mode()));
  }
  const SequenceNumber before = last_;
  Write write = NewWrite();
  for (const RemovedKey& key : removed->keys) {
    write.batch.RequireNotPut(key.key, removed->read_sequence, space);
    write.batch.Put(key.key, key.value, {.expiry_ms = key.expiry_ms, .metadata = key.metadata},
                    space);
    write.next.spaces.at(space).keys[key.key] = {std::make_shared<const std::string>(key.value),
                                                 key.expiry_ms, history_->moment(), key.metadata};
    Mark(&write);
  }
  VARVE_RETURN_IF_ERROR(Commit(&write, Mode()));
  if (last_ == before) return absl::OkStatus();
  if (before != at) return WrongAnswer("a key that is there again came back");
  done_["keys undeleted"] += removed->keys.size();
  return absl::OkStatus();
}

// --- Clones of the past --------------------------------------------------------------------------

absl::Status Workload::CommitClone(NamespaceId source, SequenceNumber version,
                                   const NamespaceDescription& space) {
  const Contents* const then = history_->Exactly(version);
  if (then == nullptr) return absl::OkStatus();
  const auto held = then->spaces.find(source);
  Write write = NewWrite();
  write.changes_namespaces = true;
  SpaceContents& clone = write.next.spaces[space.id];
  clone.description = space;
  if (held != then->spaces.end()) clone.keys = held->second.keys;
  // What is over by now is not in it; what somebody has seen gone may be, where the clock was set
  // back since.
  std::erase_if(clone.keys, [&](const auto& key) {
    return key.second.expiry_ms != kNoExpiry && key.second.expiry_ms <= store_->NowMillis();
  });
  for (auto& [key, entry] : clone.keys) {
    if (entry.expiry_ms != kNoExpiry)
      entry.value = std::make_shared<const std::string>(*entry.value);
  }
  if (space.id == write.next.next_named) ++write.next.next_named;
  write.batch.CloneNamespaceAt(source, version, space);
  Mark(&write);
  const Durability mode = Mode();
  const uint64_t sent_at = file_system_->trace_size();
  absl::StatusOr<CommitResult> sent =
      store_->Submit({.sync = mode, .override_sync = true}, &write.batch);
  if (const auto first = FirstOfTrimmed(sent.status()); first && *first > version)
    return absl::OkStatus();
  if (IsNoSuchNamespace(sent.status())) {
    if (held == then->spaces.end()) return absl::OkStatus();
    return WrongAnswer(fmt::format("namespace {} was there at {}", source, version));
  }
  if (sent.ok() && held == then->spaces.end())
    return WrongAnswer(fmt::format("namespace {} was not there at {}", source, version));
  done_[space.id == source ? "namespaces undropped" : "clones of the past"] += sent.ok();
  Note(Remember(std::move(sent), /*operations=*/1, std::move(write.next), mode, sent_at,
                std::move(write.steps)));
  return absl::OkStatus();
}

absl::Status Workload::Drop() {
  Write write = NewWrite();
  write.changes_namespaces = true;
  AddDrop(&write);
  return Commit(&write, Mode());
}

absl::Status Workload::ClonePast() {
  const NamespaceId source =
      Dice(3) != 0 || contents_.next_named == kFirstNamedNamespace
          ? AnySpace(contents_)
          : kFirstNamedNamespace +
                static_cast<NamespaceId>(Dice(contents_.next_named - kFirstNamedNamespace));
  if (contents_.spaces.size() >= kMostSpaces) return Drop();
  if (last_ == kNoSequence) return absl::OkStatus();
  const uint64_t back = Dice(2) == 0 ? Dice(20) : Dice(last_);
  const NamespaceId id = contents_.next_named;
  return CommitClone(source, last_ - std::min<uint64_t>(back, last_),
                     {.id = id, .name = fmt::format("named{}", id), .options = NewOptions()});
}

// Mostly the one that is just dropped.
absl::Status Workload::Undrop() {
  if (contents_.spaces.size() >= kMostSpaces || Dice(2) == 0) VARVE_RETURN_IF_ERROR(Drop());
  const absl::StatusOr<std::vector<DroppedNamespace>> dropped = store_->DroppedNamespaces();
  Note(dropped.status());
  if (!dropped.ok() || dropped->empty()) return absl::OkStatus();
  for (const DroppedNamespace& each : *dropped) {
    const Contents* const before = history_->Exactly(each.dropped_at - 1);
    const Contents* const after = history_->Exactly(each.dropped_at);
    if ((before != nullptr && !before->spaces.contains(each.space.id)) ||
        (after != nullptr && after->spaces.contains(each.space.id))) {
      return WrongAnswer(
          fmt::format("namespace {} was not dropped at {}", each.space.id, each.dropped_at));
    }
  }
  const DroppedNamespace& back = Dice(2) == 0 ? dropped->back() : (*dropped)[Dice(dropped->size())];
  if (contents_.spaces.contains(back.space.id) || contents_.spaces.size() >= kMostSpaces)
    return absl::OkStatus();
  return CommitClone(back.space.id, back.dropped_at - 1, back.space);
}

// --- The change feed -----------------------------------------------------------------------------

absl::Status Workload::MoveFeed() {
  const uint64_t sent_at = file_system_->trace_size();
  if (has_feed_) {
    if (reader_.position() <= store_->Feeds().front().position) return absl::OkStatus();
    history_->FeedSent(reader_.position(), sent_at);
    VARVE_RETURN_IF_ERROR(store_->AckFeed(kFeed, reader_.position()));
  } else {
    VARVE_RETURN_IF_ERROR(store_->CreateFeed({.name = kFeed,
                                              .position = kMaxSequence,
                                              .space = std::nullopt,
                                              .most_bytes = uint64_t{1} << 40,
                                              .most_age_ms = uint64_t{3650} * 86'400'000}));
    reader_.StartAt(store_->Feeds().front().position, *history_);
    history_->FeedSent(reader_.position(), sent_at);
    has_feed_ = true;
  }
  ++done_["places of a feed"];
  history_->FeedAcknowledged(reader_.position(), file_system_->trace_size());
  // It is durable, and so is everything before it.
  history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
  return absl::OkStatus();
}

absl::Status Workload::UseChanges() {
  const absl::StatusOr<ChangePositions> positions = store_->GetChangePositions();
  if (absl::IsFailedPrecondition(positions.status()) && Dice(4) != 0) return absl::OkStatus();
  if (!reader_.started()) reader_.StartAt(last_, *history_);
  if (!positions.ok() || Dice(4) == 0) {
    Note(MoveFeed());
    return absl::OkStatus();
  }
  bool at_end = false;
  absl::Status status = reader_.ReadSome(store_.get(), *history_, &at_end);
  if (const auto first = FirstOfTrimmed(status); first && !has_feed_) {
    if (*first <= reader_.position()) return WrongAnswer("changes were trimmed that are there");
    reader_.StartAt(history_->BatchAt(last_), *history_);
    return absl::OkStatus();
  }
  if (status.ok() && at_end) status = reader_.CheckCopy(*history_);
  if (!status.ok()) return WrongAnswer(std::string(status.message()));
  ++done_["changes read"];
  history_->Acknowledged(history_->BatchAt(reader_.told()), Durability::kNone,
                         file_system_->trace_size());
  return absl::OkStatus();
}

// The store was opened again.
absl::Status Workload::GoOnWithChanges(SequenceNumber recovered) {
  if (reader_.told() > recovered) {
    return WrongAnswer(fmt::format("a reader of changes was told of {}, and only {} is there",
                                   reader_.told(), recovered));
  }
  if (has_feed_ && store_->Feeds().empty()) return WrongAnswer("the feed is gone");
  return absl::OkStatus();
}

}  // namespace varve::testing
