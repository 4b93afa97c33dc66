// Workload: what it writes.
#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "unit-tests/crash/workload.h"
#include "util/base/status.h"
#include "varve/ingest.h"
#include "varve/namespace_status.h"

namespace varve::testing {
namespace {

constexpr NamespaceId kDatabase = 1;  // beside the default one
constexpr size_t kMostNamed = 2;

}  // namespace

Value Workload::NewValue() {
  const uint64_t dice = Dice(100);
  // Where the seed is even the log is mostly values that are written once, and stays their place.
  const uint64_t small = seed_ % 2 == 0 ? 20 : 90;
  const size_t size = dice < small ? Dice(400) : dice < 99 ? Dice(9000) : Dice(90000);
  std::string value = fmt::format("{}:", ++values_);
  value.resize(std::max(size, value.size()), static_cast<char>('a' + values_ % 26));
  return std::make_shared<const std::string>(std::move(value));
}

// Of one value in four.
std::string Workload::NewMetadata() {
  if (Dice(4) != 0) return "";
  std::string metadata = fmt::format("m{}:", ++values_);
  metadata.resize(metadata.size() + Dice(200), 'm');
  return metadata;
}

// Half of the keys stay; of the others most expire soon, some are of the past.
uint64_t Workload::NewExpiry() {
  const uint64_t dice = Dice(40), now_ms = store_->NowMillis();
  if (dice < 20) return kNoExpiry;
  if (dice == 20) return now_ms - 500;
  if (dice == 21) return now_ms + uint64_t{40} * 86'400'000;
  if (dice == 22) return now_ms + 3'600'000;
  return now_ms + 500 * (1 + Dice(40));
}

Durability Workload::Mode() {
  const uint64_t dice = Dice(10);
  return dice < 5 ? Durability::kAlways : dice < 8 ? Durability::kEverySecond : Durability::kNone;
}

// --- Batches -------------------------------------------------------------------------------------

NamespaceId Workload::AnySpace(const Contents& contents) {
  if (Dice(3) != 0) return kDefaultNamespace;
  return std::next(contents.spaces.begin(), static_cast<ptrdiff_t>(Dice(contents.spaces.size())))
      ->first;
}

void Workload::AddPut(Write* write, NamespaceId space) {
  SpaceContents& next = write->next.spaces.at(space);
  const uint64_t usual_ms = next.description.options.default_expiry_ms;
  const std::string key = Key();
  Entry entry{NewValue(), NewExpiry(), history_->moment(), NewMetadata()};
  if (usual_ms != 0 && Dice(2) == 0) {
    entry.expiry_ms = store_->NowMillis() + usual_ms;
    write->batch.UseNamespace(space, entry.expiry_ms);
    write->batch.Put(key, *entry.value, {.metadata = entry.metadata});
    write->batch.UseNamespace(kDefaultNamespace);
  } else {
    write->batch.Put(key, *entry.value, {.expiry_ms = entry.expiry_ms, .metadata = entry.metadata},
                     space);
  }
  next.keys[key] = std::move(entry);
}

void Workload::AddDelete(Write* write, NamespaceId space) {
  const std::string key = Key();
  write->batch.Delete(key, space);
  write->next.spaces.at(space).keys.erase(key);
}

void Workload::AddRangeDelete(Write* write, NamespaceId space) {
  std::string begin = Key(), end = Key();
  if (begin > end) std::swap(begin, end);
  if (Dice(4) == 0) end.clear();  // the namespace's
  auto& keys = write->next.spaces.at(space).keys;
  write->batch.DeleteRange(begin, end, space);
  if (end.empty() || begin < end) {
    keys.erase(keys.lower_bound(begin), end.empty() ? keys.end() : keys.lower_bound(end));
  }
}

void Workload::AddRandom(Write* write) {
  const NamespaceId space = AnySpace(write->next);
  const uint64_t dice = Dice(20);
  if (dice < 13) return AddPut(write, space);
  if (dice < 18) return AddDelete(write, space);
  AddRangeDelete(write, space);
}

NamespaceOptions Workload::NewOptions() {
  NamespaceOptions options;
  if (Dice(2) == 0) options.max_keys = 3 + Dice(20);
  if (Dice(3) == 0) options.max_bytes = 2000 + Dice(8000);
  if (Dice(2) == 0) options.default_expiry_ms = 500 * (1 + Dice(20));
  return options;
}

void Workload::AddCreation(Write* write) {
  NamespaceDescription space{.id = kDatabase};
  if (write->next.spaces.contains(kDatabase)) {
    space.id = write->next.next_named++;
    space.name = fmt::format("named{}", space.id);
    space.options = NewOptions();
  }
  write->batch.CreateNamespace(space);
  write->next.spaces[space.id].description = space;
}

void Workload::AddClone(Write* write) {
  if (write->next.spaces.size() >= 2 + kMostNamed) return AddRandom(write);
  write->changes_namespaces = true;
  const NamespaceId source = AnySpace(write->next);
  const NamespaceId id = write->next.next_named++;
  SpaceContents& clone = write->next.spaces[id];
  clone = write->next.spaces.at(source);
  clone.description = {.id = id, .name = fmt::format("named{}", id), .options = NewOptions()};
  write->batch.CloneNamespace(source, clone.description);
}

void Workload::AddDrop(Write* write) {
  const auto dropped = std::prev(write->next.spaces.end(), 1 + static_cast<ptrdiff_t>(Dice(2)));
  if (dropped->first == kDefaultNamespace) return AddCreation(write);
  write->batch.DropNamespace(dropped->first);
  write->next.spaces.erase(dropped);
}

void Workload::AddSwap(Write* write) {
  auto& spaces = write->next.spaces;
  const auto any = [&] {
    return std::next(spaces.begin(), static_cast<ptrdiff_t>(Dice(spaces.size())));
  };
  const auto one = any(), other = any();
  write->batch.SwapNamespaces(one->first, other->first);
  if (one != other) std::swap(one->second.keys, other->second.keys);
}

void Workload::AddAlteration(Write* write) {
  const auto altered = std::prev(write->next.spaces.end());
  NamespaceDescription& space = altered->second.description;
  space.id = altered->first;
  space.options = NewOptions();
  if (space.id >= kFirstNamedNamespace) space.name = fmt::format("named{}.{}", space.id, ++values_);
  write->batch.AlterNamespace(space);
}

void Workload::AddChangeOfNamespaces(Write* write) {
  write->changes_namespaces = true;
  const size_t spaces = write->next.spaces.size();
  const uint64_t dice = Dice(20);
  if (spaces == 1 || (dice < 5 && spaces < 2 + kMostNamed)) return AddCreation(write);
  if (dice < 8) return AddDrop(write);
  if (dice < 13) return AddSwap(write);
  if (dice < 15) return AddAlteration(write);
  const NamespaceId space = AnySpace(write->next);
  write->batch.ClearNamespace(space);
  write->next.spaces.at(space).keys.clear();
}

// --- Commits -------------------------------------------------------------------------------------

uint64_t Workload::CountOf(const SpaceContents& space, bool at_most) const {
  const Known known = KnownNow();
  uint64_t count = 0;
  for (const auto& [key, entry] : space.keys) {
    const Presence presence = PresenceOf(entry, known, store_->NowMillis());
    count += presence == Presence::kThere || (at_most && presence == Presence::kEither);
  }
  return count;
}

absl::Status Workload::CheckAccepted(const Write& write) const {
  if (write.changes_namespaces) return absl::OkStatus();
  for (const auto& [id, space] : write.next.spaces) {
    const uint64_t most = space.description.options.max_keys;
    if (most == 0) continue;
    const uint64_t before = CountOf(contents_.spaces.at(id), /*at_most=*/true);
    if (CountOf(space, /*at_most=*/false) > std::max(most, before)) {
      return WrongAnswer(fmt::format("namespace {} has more keys than its quota of {}", id, most));
    }
  }
  return absl::OkStatus();
}

// Something could have become too much. What has expired counts where it can't be removed.
absl::Status Workload::CheckRefused(const Write& write, size_t operations) const {
  if (write.changes_namespaces || file_system_->failed_calls() > 0) return absl::OkStatus();
  for (const auto& [id, space] : contents_.spaces) {
    const NamespaceOptions& options = space.description.options;
    if (options.max_bytes != 0) return absl::OkStatus();
    if (options.max_keys != 0 && CountOf(space, /*at_most=*/true) + operations > options.max_keys) {
      return absl::OkStatus();
    }
  }
  return WrongAnswer("a write was refused that is within all quotas");
}

absl::Status Workload::Remember(absl::StatusOr<CommitResult> sent, size_t operations, Contents next,
                                Durability mode, uint64_t sent_at, std::vector<Contents> steps) {
  VARVE_RETURN_IF_ERROR(sent.status());
  last_ = sent->sequence;
  if (mode == Durability::kEverySecond) last_every_second_ = last_;
  contents_ = next;
  history_->Sent(last_ - operations + 1, last_, mode, std::move(next), sent_at, std::move(steps));
  VARVE_RETURN_IF_ERROR(mode == Durability::kAlways ? store_->WaitUntilDurable(sent->durable_after)
                                                    : store_->Push());
  history_->Acknowledged(last_, mode, file_system_->trace_size());
  return absl::OkStatus();
}

absl::Status Workload::Commit(Write* write, Durability mode) {
  const size_t operations = write->batch.size();
  if (operations == 0) return absl::OkStatus();
  Mark(write);
  if (write->steps.size() != operations) write->steps.clear();
  const uint64_t sent_at = file_system_->trace_size();
  absl::StatusOr<CommitResult> sent =
      store_->Submit({.sync = mode, .override_sync = true}, &write->batch);
  if (IsNamespaceFull(sent.status())) {
    ++done_["refused for a quota"];
    return CheckRefused(*write, operations);
  }
  if (absl::IsAborted(sent.status())) {
    ++done_["conflicts"];
    return absl::OkStatus();
  }
  if (sent.ok()) {
    VARVE_RETURN_IF_ERROR(CheckAccepted(*write));
    done_["changes of namespaces"] += write->changes_namespaces;
  }
  Note(Remember(std::move(sent), operations, std::move(write->next), mode, sent_at,
                std::move(write->steps)));
  return absl::OkStatus();
}

absl::Status Workload::Put() {
  if (store_ == nullptr) VARVE_RETURN_IF_ERROR(Open());
  const uint64_t errors = errors_;
  Write unlimited = NewWrite();
  NamespaceDescription& space = unlimited.next.spaces.at(kDefaultNamespace).description;
  if (space.options.has_quota()) {
    space.options = {};
    unlimited.batch.AlterNamespace(space);
    VARVE_RETURN_IF_ERROR(Commit(&unlimited, Durability::kAlways));
  }
  Write write = NewWrite();
  AddPut(&write, kDefaultNamespace);
  VARVE_RETURN_IF_ERROR(Commit(&write, Durability::kAlways));
  return errors_ == errors ? absl::OkStatus() : last_error_;
}

absl::Status Workload::IngestSome() {
  IngestOptions options{.space = AnySpace(contents_)};
  Contents next = contents_;
  std::vector<Contents> steps;
  auto& keys = next.spaces.at(options.space).keys;
  if (Dice(2) == 0) {
    options.replace = IngestRange{"key", "key5"};
    keys.erase(keys.lower_bound("key"), keys.lower_bound("key5"));
    steps.push_back(next);
  }
  absl::StatusOr<std::unique_ptr<Ingest>> ingest = BeginIngest(store_.get(), options);
  if (absl::IsFailedPrecondition(ingest.status())) return absl::OkStatus();  // its keys expire
  std::map<std::string, Value> added;
  for (uint64_t i = Dice(30); i > 0; --i) {
    const std::string key = Key();
    if (!options.replace || key < options.replace->end) added[key] = NewValue();
  }
  absl::Status status = ingest.status();
  for (const auto& [key, value] : added) {
    if (status.ok()) status = (*ingest)->Add(key, *value);
    keys[key] = Entry{value, kNoExpiry, history_->moment()};
  }
  const bool is_left = Dice(6) == 0;
  if (!status.ok() || is_left || (added.empty() && !options.replace)) {
    Note(status);
    return absl::OkStatus();
  }
  const uint64_t sent_at = file_system_->trace_size();
  absl::StatusOr<CommitResult> committed = (*ingest)->Commit();
  if (IsNamespaceFull(committed.status())) return absl::OkStatus();
  done_["ingests"] += committed.ok();
  if (!added.empty()) steps.push_back(next);
  const size_t operations = steps.size();
  Note(Remember(std::move(committed), operations, std::move(next), Durability::kAlways, sent_at,
                std::move(steps)));
  return absl::OkStatus();
}

absl::Status Workload::ConditionalWrite() {
  const NamespaceId space = AnySpace(contents_);
  const std::string key = Key();
  std::string value;
  const absl::StatusOr<ReadResult> read =
      store_->Get({.space = space, .wait_until_durable = false}, key, &value);
  if (!read.ok()) {
    Note(read.status());
    return absl::OkStatus();
  }
  const SequenceNumber at = last_;
  if (Dice(2) == 0) {
    // Somebody else comes in between.
    Write other = NewWrite();
    const Value other_value = NewValue();
    other.batch.Put(key, *other_value, space);
    other.next.spaces.at(space).keys[key] = {other_value, kNoExpiry, history_->moment()};
    VARVE_RETURN_IF_ERROR(Commit(&other, Mode()));
  }
  const SequenceNumber before = last_;
  Write write = NewWrite();
  write.batch.RequireUnchanged(key, read->read_sequence, space);
  AddPut(&write, space);
  VARVE_RETURN_IF_ERROR(Commit(&write, Mode()));
  if (before == at || last_ == before) return absl::OkStatus();
  return WrongAnswer(fmt::format("{} had changed, and the write went on", key));
}

// The same value with another expiry, or none, or with other metadata.
absl::Status Workload::ChangeExtras() {
  const NamespaceId space = AnySpace(contents_);
  const auto& keys = contents_.spaces.at(space).keys;
  const auto entry = keys.lower_bound(Key());
  if (entry == keys.end()) return absl::OkStatus();
  const std::string key = entry->first;
  std::string value;
  const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, key, &value);
  Note(read.status());
  if (!read.ok() || !store_->log_status().ok()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(
      CheckAnswer(key, *read, value, &entry->second, KnownNow(), store_->NowMillis()));
  if (!read->found) {
    history_->SeenGone({entry->second.value}, file_system_->trace_size());
    return absl::OkStatus();
  }
  Write write = NewWrite();
  Entry changed{std::make_shared<const std::string>(value), entry->second.expiry_ms,
                history_->moment(), entry->second.metadata};
  const bool is_expiry = Dice(3) != 0;
  if (is_expiry) {
    changed.expiry_ms = NewExpiry();
  } else {
    changed.metadata = NewMetadata();
    ++done_["changes of metadata"];
  }
  write.batch.RequireUnchanged(key, read->read_sequence, space);
  write.batch.Put(key, value,
                  {.expiry_ms = changed.expiry_ms,
                   .metadata = changed.metadata,
                   .cause = is_expiry ? WriteCause::kExpiryChange : WriteCause::kMetadataChange},
                  space);
  write.next.spaces.at(space).keys[key] = changed;
  return Commit(&write, Mode());
}

// --- Transactions --------------------------------------------------------------------------------

absl::Status Workload::ReadInTransaction(Transaction* transaction, std::string* key,
                                         NamespaceId* space) {
  *space = AnySpace(contents_);
  *key = Key();
  const auto& keys = contents_.spaces.at(*space).keys;
  const auto entry = keys.find(*key);
  std::string value;
  const absl::StatusOr<ReadResult> read = transaction->Get({.space = *space}, *key, &value);
  Note(read.status());
  if (!read.ok() || !store_->log_status().ok()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(CheckAnswer(*key, *read, value,
                                    entry == keys.end() ? nullptr : &entry->second, KnownNow(),
                                    store_->NowMillis()));
  if (entry != keys.end() && !read->found)
    history_->SeenGone({entry->second.value}, file_system_->trace_size());
  return absl::OkStatus();
}

void Workload::WriteInTransaction(Transaction* transaction, Contents* next) {
  for (uint64_t i = 1 + Dice(6); i > 0; --i) {
    const NamespaceId space = AnySpace(*next);
    auto& keys = next->spaces.at(space).keys;
    const std::string key = Key();
    const uint64_t dice = Dice(20);
    if (dice < 13 || i == 1) {
      Entry entry{NewValue(), NewExpiry(), history_->moment()};
      transaction->Put(key, *entry.value, space, entry.expiry_ms);
      keys[key] = std::move(entry);
    } else if (dice < 16) {
      transaction->Delete(key, space);
      keys.erase(key);
    } else if (dice < 17) {
      transaction->DeleteRange(key, "key5", space);
      if (key < "key5") keys.erase(keys.lower_bound(key), keys.lower_bound("key5"));
    } else if (dice < 18) {
      transaction->ClearNamespace(space);
      keys.clear();
    } else {
      transaction->SwapNamespaces(kDefaultNamespace, space);
      std::swap(next->spaces.at(kDefaultNamespace).keys, next->spaces.at(space).keys);
    }
  }
}

absl::Status Workload::RunTransaction() {
  const Durability mode = Mode();
  Transaction transaction(store_.get(), {.write = {.sync = mode, .override_sync = true}});
  std::string key;
  NamespaceId space = kDefaultNamespace;
  for (uint64_t i = 1 + Dice(3); i > 0; --i)
    VARVE_RETURN_IF_ERROR(ReadInTransaction(&transaction, &key, &space));
  const SequenceNumber at = last_;
  if (Dice(3) == 0) {
    // Somebody else writes what was read.
    Write other = NewWrite();
    const Value value = NewValue();
    other.batch.Put(key, *value, space);
    other.next.spaces.at(space).keys[key] = {value, kNoExpiry, history_->moment()};
    VARVE_RETURN_IF_ERROR(Commit(&other, Mode()));
  }
  const SequenceNumber before = last_;
  Contents next = contents_;
  WriteInTransaction(&transaction, &next);
  const uint64_t sent_at = file_system_->trace_size();
  absl::StatusOr<CommitResult> sent = transaction.Submit();
  if (sent.ok() && before != at)
    return WrongAnswer(fmt::format("a transaction went on that had read {} before", key));
  if (absl::IsAborted(sent.status()) || IsNamespaceFull(sent.status())) {
    ++done_["transactions refused"];
    return absl::OkStatus();
  }
  ++done_["transactions"];
  Note(Remember(std::move(sent), /*operations=*/1, std::move(next), mode, sent_at));
  return absl::OkStatus();
}

}  // namespace varve::testing
