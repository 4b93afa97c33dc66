#include "unit-tests/crash/workload.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "db/namespace_status.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "util/status.h"

namespace varve::testing {
namespace {

absl::Status Wrong(const std::string& what) { return absl::FailedPreconditionError("wrong answer: " + what); }

std::string Shown(std::string_view value) { return fmt::format("{} ({} bytes)", value.substr(0, 24), value.size()); }

}  // namespace

SimulatedDisk EmptyDisk() {
  SimulatedDisk disk;
  disk.Apply({.type = DiskEvent::Type::kMakeDirectory, .path = SimulatedDisk::ParentOf(kStoreDirectory)});
  return disk.CutPower(SimulatedDisk::kKeepAll);
}

EngineOptions SmallOptions(uint64_t seed, FileSystem* file_system) {
  std::mt19937_64 random(seed);
  EngineOptions options;
  options.file_system = file_system;
  options.write_buffer_size = (4u << 10) << random() % 3;
  options.segment_size = (4u << 10) << random() % 3;
  options.log_file_size = 64u << 10;
  options.group_max_bytes = (4u << 10) << random() % 4;
  options.runs_per_level = 2 + static_cast<int>(random() % 2);
  options.max_full_write_buffers = 1 + static_cast<int>(random() % 3);
  options.offset_table_cache_size = 64u << 10;
  options.block_cache_size = 64u << 10;
  return options;
}

uint64_t StatisticOf(const StorageEngine& store, std::string_view name) {
  for (const auto& [key, value] : store.Statistics()) {
    if (key == name) return value;
  }
  return 0;
}

namespace {

absl::Status CheckNamespace(StorageEngine* store, NamespaceId space, const Contents& contents) {
  uint64_t bytes = 0;
  const auto iterator = store->NewIterator({.space = space}, {}, {}, nullptr);
  iterator->SeekToFirst();
  for (const auto& [key, value] : contents) {
    bytes += key.size() + value->size();
    VARVE_RETURN_IF_ERROR(iterator->status());
    if (!iterator->Valid()) return Wrong(fmt::format("{} is missing at the end of a scan", key));
    if (iterator->key() != key) return Wrong(fmt::format("a scan shows {} instead of {}", iterator->key(), key));
    if (iterator->value() != *value) {
      return Wrong(fmt::format("{} has {}, not {}", key, Shown(iterator->value()), Shown(*value)));
    }
    iterator->Next();
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  if (iterator->Valid()) return Wrong(fmt::format("a scan shows {}, which should not be there", iterator->key()));
  iterator->SeekToLast();
  for (auto entry = contents.rbegin(); entry != contents.rend(); ++entry) {
    VARVE_RETURN_IF_ERROR(iterator->status());
    if (!iterator->Valid() || iterator->key() != entry->first) {
      return Wrong(fmt::format("a scan backwards does not show {}", entry->first));
    }
    iterator->Prev();
  }
  if (iterator->Valid()) return Wrong(fmt::format("a scan backwards shows {} before the first key", iterator->key()));
  std::string value;
  for (int i = 0; i < 60; ++i) {
    const std::string key = fmt::format("key{}", i);
    VARVE_ASSIGN_OR_RETURN(const ReadResult result, store->Get({.space = space}, key, &value));
    const auto expected = contents.find(key);
    if (result.found != (expected != contents.end())) {
      return Wrong(fmt::format("{} is {}", key, result.found ? "there" : "missing"));
    }
    if (result.found && value != *expected->second) {
      return Wrong(fmt::format("{} reads {}, not {}", key, Shown(value), Shown(*expected->second)));
    }
  }
  VARVE_ASSIGN_OR_RETURN(const CountResult count, store->Count({.space = space}, {}, {}));
  if (count.keys != contents.size() || count.bytes != bytes) {
    return Wrong(
        fmt::format("{} keys of {} bytes are counted, not {} of {}", count.keys, count.bytes, contents.size(), bytes));
  }
  return absl::OkStatus();
}

}  // namespace

Contents ContentsOf(const Contents& contents, NamespaceId space) {
  Contents of;
  for (const auto& [key, value] : contents) {
    const bool is_other = key.starts_with(kOtherNamespaceMark);
    if (is_other && space == kOtherNamespace && key != kOtherNamespaceMark) {
      of.emplace(key.substr(kOtherNamespaceMark.size()), value);
    }
    if (!is_other && space == kDefaultNamespace) of.emplace(key, value);
  }
  return of;
}

Contents JoinedContents(const Contents& first, const Contents* other) {
  Contents joined = first;
  if (other == nullptr) return joined;
  joined.emplace(kOtherNamespaceMark, std::make_shared<const std::string>());
  for (const auto& [key, value] : *other) joined.emplace(std::string(kOtherNamespaceMark) + key, value);
  return joined;
}

absl::Status CheckContents(StorageEngine* store, const Contents& contents) {
  VARVE_RETURN_IF_ERROR(CheckNamespace(store, kDefaultNamespace, ContentsOf(contents, kDefaultNamespace)));
  if (contents.contains(kOtherNamespaceMark)) {
    return CheckNamespace(store, kOtherNamespace, ContentsOf(contents, kOtherNamespace));
  }
  std::string value;
  const absl::Status missing = store->Get({.space = kOtherNamespace}, "key", &value).status();
  if (missing.ok()) return Wrong("a namespace that was dropped, or not created yet, is there");
  return IsNoSuchNamespace(missing) ? absl::OkStatus() : missing;
}

void SetUpLibraries() {
  static const absl::Status status = []() -> absl::Status {
    const DeterministicThreads threads(0);
    SimulatedFileSystem file_system(EmptyDisk(), &DeterministicThreads::MaySwitch);
    History history;
    Workload workload(0, &file_system, &history);
    VARVE_RETURN_IF_ERROR(workload.Open());
    VARVE_RETURN_IF_ERROR(workload.Run(60));
    return workload.store() == nullptr ? absl::OkStatus() : workload.Close();
  }();
  if (!status.ok()) spdlog::error("the first simulation: {}", status.ToString());
}

Workload::Workload(uint64_t seed, SimulatedFileSystem* file_system, History* history)
    : random_(seed), seed_(seed), file_system_(file_system), history_(history) {}

Workload::~Workload() = default;

absl::Status Workload::Open() {
  store_.reset();
  const History::Bounds bounds = {history_->last_acknowledged(), history_->last()};
  VARVE_ASSIGN_OR_RETURN(store_, StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, file_system_)));
  last_ = StatisticOf(*store_, "sequence");
  if (last_ < bounds.least || last_ > bounds.most || history_->At(last_) == nullptr) {
    return Wrong(fmt::format("opened at {}, but {} was acknowledged and {} sent", last_, bounds.least, bounds.most));
  }
  history_->Forget(last_);
  history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
  contents_ = *history_->At(last_);
  return absl::OkStatus();
}

absl::Status Workload::Close() {
  const absl::Status closed = store_->Close();
  if (closed.ok()) history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
  store_.reset();
  return closed;
}

absl::Status Workload::Run(int count) {
  for (int i = 0; i < count; ++i) {
    if (const absl::Status status = Step(); !status.ok()) {
      return absl::Status(status.code(), fmt::format("step {}: {}", i, std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

void Workload::Note(const absl::Status& status) {
  if (status.ok()) return;
  ++errors_;
  last_error_ = status;
  if (store_ != nullptr && !store_->log_status().ok()) ForgetWhatWasLost();
}

void Workload::ForgetWhatWasLost() {
  const SequenceNumber durable = store_->durable_sequence();
  if (const Contents* contents = history_->At(durable)) contents_ = *contents;
}

std::shared_ptr<const std::string> Workload::Value() {
  const uint64_t dice = random_() % 100;
  const size_t size = dice < 90 ? random_() % 400 : dice < 99 ? random_() % 9000 : random_() % 90000;
  std::string value = fmt::format("{}:", ++values_);
  value.resize(std::max(size, value.size()), static_cast<char>('a' + values_ % 26));
  return std::make_shared<const std::string>(std::move(value));
}

Durability Workload::Mode() {
  const uint64_t dice = random_() % 10;
  return dice < 5 ? Durability::kAlways : dice < 8 ? Durability::kEverySecond : Durability::kNone;
}

void Workload::AddPut(WriteBatch* batch, Contents* next) {
  const std::string key = Key();
  const auto value = Value();
  batch->Put(key, *value);
  (*next)[key] = value;
}

void Workload::AddDelete(WriteBatch* batch, Contents* next) {
  const std::string key = Key();
  batch->Delete(key);
  next->erase(key);
}

void Workload::AddRangeDelete(WriteBatch* batch, Contents* next) {
  std::string begin = Key(), end = Key();
  if (begin > end) std::swap(begin, end);
  batch->DeleteRange(begin, end);
  if (begin < end) next->erase(next->lower_bound(begin), next->lower_bound(end));
}

void Workload::AddRandom(WriteBatch* batch, Contents* next) {
  const uint64_t dice = random_() % 20;
  if (dice < 13) return AddPut(batch, next);
  if (dice < 19) return AddDelete(batch, next);
  AddRangeDelete(batch, next);
}

void Workload::AddToOther(WriteBatch* batch, Contents* next) {
  const Contents first = ContentsOf(*next, kDefaultNamespace);
  Contents other = ContentsOf(*next, kOtherNamespace);
  batch->UseNamespace(kOtherNamespace);
  AddRandom(batch, &other);
  batch->UseNamespace(kDefaultNamespace);
  *next = JoinedContents(first, &other);
}

void Workload::AddChangeOfNamespaces(WriteBatch* batch, Contents* next) {
  Contents first = ContentsOf(*next, kDefaultNamespace);
  Contents other = ContentsOf(*next, kOtherNamespace);
  const uint64_t dice = random_() % 4;
  bool is_there = true;
  if (!next->contains(kOtherNamespaceMark)) {
    batch->CreateNamespace({.id = kOtherNamespace});
  } else if (dice == 0) {
    batch->DropNamespace(kOtherNamespace);
    is_there = false;
  } else if (dice == 1) {
    batch->ClearNamespace(kOtherNamespace);
    other.clear();
  } else {
    batch->SwapNamespaces(kDefaultNamespace, kOtherNamespace);
    std::swap(first, other);
  }
  *next = JoinedContents(first, is_there ? &other : nullptr);
}

absl::Status Workload::Commit(WriteBatch* batch, Contents next, Durability mode) {
  const uint64_t sent_at = file_system_->trace_size();
  const absl::StatusOr<CommitResult> sent = store_->Submit({.sync = mode, .override_sync = true}, batch);
  if (!sent.ok()) {
    batch->Clear();
    return sent.status();
  }
  if (sent->sequence == last_) return absl::OkStatus();  // it had no operation
  last_ = sent->sequence;
  if (mode == Durability::kEverySecond) last_every_second_ = last_;
  contents_ = next;
  history_->Sent(last_, mode, std::move(next), sent_at);
  VARVE_RETURN_IF_ERROR(mode == Durability::kAlways ? store_->WaitUntilDurable(sent->gate) : store_->Push());
  history_->Acknowledged(last_, mode, file_system_->trace_size());
  return absl::OkStatus();
}

absl::Status Workload::Put() {
  if (store_ == nullptr) VARVE_RETURN_IF_ERROR(Open());
  WriteBatch batch;
  Contents next = contents_;
  AddPut(&batch, &next);
  absl::Status status = Commit(&batch, std::move(next), Durability::kAlways);
  Note(status);
  return status;
}

absl::Status Workload::ConditionalWrite() {
  const std::string key = Key();
  std::string value;
  const absl::StatusOr<ReadResult> read = store_->Get({.wait_until_durable = false}, key, &value);
  if (!read.ok()) {
    Note(read.status());
    return absl::OkStatus();
  }
  if (random_() % 2 == 0) {
    // Somebody else comes in between.
    WriteBatch other;
    Contents next = contents_;
    const auto other_value = Value();
    other.Put(key, *other_value);
    next[key] = other_value;
    Note(Commit(&other, std::move(next), Mode()));
    if (!history_->At(last_)) return absl::OkStatus();
  }
  const SequenceNumber before = last_;
  const bool is_stale = before != read->read_sequence;
  WriteBatch batch;
  Contents next = contents_;
  batch.RequireUnchanged(key, read->read_sequence);
  AddPut(&batch, &next);
  const absl::Status status = Commit(&batch, std::move(next), Mode());
  if (is_stale && last_ != before) return Wrong(fmt::format("{} had changed, and the write went on", key));
  if (!absl::IsAborted(status)) Note(status);
  return absl::OkStatus();
}

absl::Status Workload::Read() {
  const absl::Status status = CheckContents(store_.get(), contents_);
  // A wrong answer is one also where errors are expected.
  if (absl::IsFailedPrecondition(status)) {
    if (store_->log_status().ok()) return status;
    ForgetWhatWasLost();  // the log failed unnoticed
    return CheckContents(store_.get(), contents_);
  }
  Note(status);
  if (status.ok()) {
    // What was shown can't be taken back, but for writes of the modes that promise nothing.
    history_->Acknowledged(store_->durable_sequence(), Durability::kAlways, file_system_->trace_size());
  }
  return absl::OkStatus();
}

// Long enough for everything that is put off: the second between syncs, the counting of keys, another try after an error.
absl::Status Workload::Rest() {
  absl::SleepFor(absl::Seconds(3 + random_() % 10));
  if (store_->log_status().ok() && last_every_second_ != kNoSequence) {
    history_->Acknowledged(std::min(last_every_second_, last_), Durability::kAlways, file_system_->trace_size());
  }
  return absl::OkStatus();
}

absl::Status Workload::Restart(bool killed) {
  if (killed) {
    file_system_->StopHere();
    store_.reset();
    file_system_->GoOn();
  } else {
    Note(Close());
  }
  return OpenUnlessRefused();
}

absl::Status Workload::OpenUnlessRefused() {
  const absl::Status opened = Open();
  if (absl::IsFailedPrecondition(opened)) return opened;
  Note(opened);
  return absl::OkStatus();
}

absl::Status Workload::Step() {
  if (store_ == nullptr) return OpenUnlessRefused();
  const uint64_t dice = random_() % 100;
  if (dice < 3) return Read();
  if (dice < 5) return Rest();
  if (dice < 13) return ConditionalWrite();
  if (dice < 15) {
    Note(store_->Flush());
    return absl::OkStatus();
  }
  if (dice < 17) {
    Note(store_->Compact({}, {}));
    return absl::OkStatus();
  }
  if (dice < 19) {
    const absl::Status synced = store_->Sync();
    Note(synced);
    if (synced.ok()) history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
    return absl::OkStatus();
  }
  if (dice < 20) return Restart(random_() % 2 == 0);
  WriteBatch batch;
  Contents next = contents_;
  if (dice < 75) {
    AddRandom(&batch, &next);
  } else if (dice < 95) {
    for (uint64_t i = 2 + random_() % 8; i > 0; --i) {
      random_() % 3 == 0 && next.contains(kOtherNamespaceMark) ? AddToOther(&batch, &next) : AddRandom(&batch, &next);
    }
  } else if (dice < 98) {
    if (random_() % 2 == 0) AddRandom(&batch, &next);
    AddChangeOfNamespaces(&batch, &next);
    if (random_() % 2 == 0) AddRandom(&batch, &next);
  } else {
    batch.ClearNamespace();
    const Contents other = ContentsOf(next, kOtherNamespace);
    next = JoinedContents({}, next.contains(kOtherNamespaceMark) ? &other : nullptr);
    if (dice == 99) AddPut(&batch, &next);
  }
  Note(Commit(&batch, std::move(next), Mode()));
  return absl::OkStatus();
}

}  // namespace varve::testing
