#include "unit-tests/crash/workload.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/internal/sysinfo.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "unit-tests/testing/eager_picker.h"
#include "util/base/status.h"

namespace varve::testing {

SimulatedDisk EmptyDisk() {
  SimulatedDisk disk;
  disk.Apply(
      {.type = DiskEvent::Type::kMakeDirectory, .path = SimulatedDisk::ParentOf(kStoreDirectory)});
  return disk.CutPower(SimulatedDisk::kKeepAll);
}

EngineOptions SmallOptions(uint64_t seed, FileSystem* file_system, const Clock* clock) {
  std::mt19937_64 random(seed);
  EngineOptions options;
  options.file_system = file_system;
  options.clock = clock;
  options.write_buffer_size = (4u << 10) << random() % 3;
  options.segment_size = (4u << 10) << random() % 3;
  options.log_file_size = 64u << 10;
  options.group_max_bytes = (4u << 10) << random() % 4;
  options.runs_per_level = 2 + static_cast<int>(random() % 2);
  if (seed % 2 == 0) options.compaction_picker = std::make_shared<testing::EagerPicker>();
  options.max_full_write_buffers = 1 + static_cast<int>(random() % 3);
  options.max_background_jobs = 2 + static_cast<int>(seed % 3);
  options.offset_table_cache_size = 64u << 10;
  options.block_cache_size = 64u << 10;
  options.sync_backend = random() % 2 == 0 ? SyncBackend::kPwrite : SyncBackend::kDirect;
  if (seed % 4 == 1) options.history.bytes = 16u << 10;
  if (seed % 4 == 3 || seed % 8 == 6) options.history.time_ms = 86'400'000;
  if (seed % 4 == 2) options.changes.bytes = 16u << 20;
  if (seed % 8 == 1) options.changes.bytes = 128u << 10;
  return options;
}

uint64_t StatisticOf(const StorageEngine& store, std::string_view name) {
  for (const auto& [key, value] : store.Statistics()) {
    if (key == name) return value;
  }
  return 0;
}

void SetUpLibraries() {
  static const absl::Status status = []() -> absl::Status {
    // Measured by sleeping, once, when two threads first meet at a lock.
    absl::base_internal::NominalCPUFrequency();
    const DeterministicThreads threads(0);
    SimulatedFileSystem file_system(EmptyDisk(), &DeterministicThreads::MaySwitch);
    History history;
    ManualClock clock;
    Workload workload(0, &file_system, &history, &clock);
    workload.UseIngestsAndChanges();
    VARVE_RETURN_IF_ERROR(workload.Open());
    VARVE_RETURN_IF_ERROR(workload.Run(120));
    return workload.store() == nullptr ? absl::OkStatus() : workload.Close();
  }();
  if (!status.ok()) spdlog::error("the first simulation: {}", status.ToString());
}

Workload::Workload(uint64_t seed, SimulatedFileSystem* file_system, History* history,
                   ManualClock* clock)
    : random_(seed),
      seed_(seed),
      file_system_(file_system),
      history_(history),
      clock_(clock),
      reader_(seed) {}

Workload::~Workload() = default;

absl::Status Workload::Open() {
  store_.reset();
  const History::Bounds bounds = {history_->last_acknowledged(), history_->last(), {}};
  const uint64_t began_at = file_system_->trace_size();
  VARVE_ASSIGN_OR_RETURN(
      store_, StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, file_system_, clock_)));
  history_->ClockIs(store_->NowMillis(), began_at);
  const SequenceNumber sequence = StatisticOf(*store_, "recovered_sequence");
  last_ = history_->BatchAt(sequence);
  if (sequence < bounds.least || last_ > bounds.most || history_->At(sequence) == nullptr) {
    return WrongAnswer(fmt::format("opened at {}, but {} was acknowledged and {} sent", sequence,
                                   bounds.least, bounds.most));
  }
  history_->Forget(last_);
  history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
  contents_ = *history_->At(last_);
  return GoOnWithChanges(sequence);
}

absl::Status Workload::Close() {
  NoteFigures();
  const absl::Status closed = store_->Close();
  if (closed.ok()) history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
  store_.reset();
  return closed;
}

void Workload::NoteFigures() {
  done_["keys removed"] += StatisticOf(*store_, "expired_keys");
  done_["clock marks"] += StatisticOf(*store_, "clock_marks");
  done_["merges"] += StatisticOf(*store_, "compactions");
}

absl::Status Workload::Run(int count) {
  for (int i = 0; i < count; ++i) {
    if (const absl::Status status = Step(); !status.ok()) {
      return absl::Status(status.code(),
                          fmt::format("step {}: {}", i, std::string(status.message())));
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

// --- Time ----------------------------------------------------------------------------------------

void Workload::ClockIs() {
  const uint64_t now_ms = store_ == nullptr ? clock_->WallMillis() : store_->NowMillis();
  history_->ClockIs(std::max(now_ms, clock_->WallMillis()), file_system_->trace_size());
}

void Workload::PassTime(uint64_t millis) {
  clock_->Advance(millis);
  ClockIs();
}

// By somebody who gets it wrong, or puts it right. What was being removed by the clock as it was is
// gone before anybody looks.
void Workload::SetClock() {
  constexpr uint64_t kLeaps[] = {10'000, 600'000, uint64_t{30} * 86'400'000};
  const uint64_t leap = kLeaps[Dice(3)];
  switch (Dice(3)) {
    case 0:
      clock_->SetWall(clock_->WallMillis() + leap);
      break;
    case 1:
      clock_->SetWall(clock_->WallMillis() - leap);
      break;
    default:
      clock_->SetWall(ManualClock::kStart + clock_->MonotonicNanos() / 1'000'000);
  }
  ClockIs();
  if (store_ != nullptr) absl::SleepFor(absl::Seconds(1));
}

// Long enough for everything that is put off: the second between syncs, the counting of keys, the
// removing of those that have expired, another try after an error.
absl::Status Workload::Rest() {
  const uint64_t seconds = 3 + Dice(10);
  PassTime(seconds * 1000);
  absl::SleepFor(absl::Seconds(seconds));
  if (store_->log_status().ok() && last_every_second_ != kNoSequence) {
    history_->Acknowledged(std::min(last_every_second_, last_), Durability::kAlways,
                           file_system_->trace_size());
  }
  return absl::OkStatus();
}

// --- Reading -------------------------------------------------------------------------------------

absl::Status Workload::Check() {
  std::vector<Value> gone;
  VARVE_RETURN_IF_ERROR(CheckContents(store_.get(), contents_, KnownNow(), &gone));
  // Without a log nobody promises anything about the next start.
  if (store_->log_status().ok()) history_->SeenGone(gone, file_system_->trace_size());
  return absl::OkStatus();
}

absl::Status Workload::CheckAndNotice() {
  const absl::Status status = Check();
  if (!absl::IsFailedPrecondition(status) || store_->log_status().ok()) return status;
  ForgetWhatWasLost();  // the log failed unnoticed
  return Check();
}

absl::Status Workload::Read() {
  const absl::Status status = CheckAndNotice();
  // A wrong answer is one also where errors are expected.
  if (absl::IsFailedPrecondition(status)) return status;
  Note(status);
  if (status.ok()) {
    // What was shown can't be taken back, but for writes of the modes that promise nothing.
    history_->Acknowledged(store_->durable_sequence(), Durability::kAlways,
                           file_system_->trace_size());
  }
  return absl::OkStatus();
}

absl::Status Workload::ReadOne() {
  const NamespaceId space = AnySpace(contents_);
  const auto& keys = contents_.spaces.at(space).keys;
  std::string key = Key();
  // Rather one that expires: who finds it gone leaves a mark of the clock, as nobody has removed it
  // yet.
  for (auto next = keys.lower_bound(key); next != keys.end(); ++next) {
    if (next->second.expiry_ms == kNoExpiry) continue;
    key = next->first;
    break;
  }
  const auto entry = keys.find(key);
  std::string value;
  const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, key, &value);
  Note(read.status());
  if (!read.ok() || !store_->log_status().ok()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(CheckAnswer(key, *read, value,
                                    entry == keys.end() ? nullptr : &entry->second, KnownNow(),
                                    store_->NowMillis()));
  if (entry != keys.end() && !read->found)
    history_->SeenGone({entry->second.value}, file_system_->trace_size());
  return absl::OkStatus();
}

// --- Steps ---------------------------------------------------------------------------------------

absl::Status Workload::Restart(bool killed) {
  if (killed) {
    NoteFigures();
    file_system_->StopHere();
    store_.reset();
    file_system_->GoOn();
  } else {
    Note(Close());
  }
  if (Dice(2) == 0) SetClock();
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
  const uint64_t dice = Dice(100);
  if (dice < 3) return Read();
  if (dice < 6) return Rest();
  if (dice < 10) return ReadOne();
  if (dice < 16) return ConditionalWrite();
  if (dice < 20) return ChangeExtras();
  if (dice < 26) return RunTransaction();
  if (dice < 28) {
    Note(store_->Flush());
    return absl::OkStatus();
  }
  if (dice < 30) {
    Note(store_->Compact({}, {}, AnySpace(contents_)));
    return absl::OkStatus();
  }
  if (dice < 32) {
    const absl::Status synced = store_->Sync();
    Note(synced);
    if (synced.ok()) history_->Acknowledged(last_, Durability::kAlways, file_system_->trace_size());
    return absl::OkStatus();
  }
  if (dice < 33) return Restart(Dice(2) == 0);
  if (dice < 37) {
    PassTime(500 * (1 + Dice(20)));
    return ReadOne();
  }
  if (dice < 39) {
    SetClock();
    return absl::OkStatus();
  }
  if (uses_ingests_and_changes_ && Dice(8) == 0) return Dice(2) == 0 ? IngestSome() : UseChanges();
  if (Dice(6) == 0) return LookBack();
  Write write = NewWrite();
  const auto add = [&](uint64_t count, void (Workload::*one)(Write*)) {
    for (; count > 0; --count) {
      (this->*one)(&write);
      Mark(&write);
    }
  };
  if (dice < 76) {
    add(1, &Workload::AddRandom);
  } else if (dice < 93) {
    add(2 + Dice(8), &Workload::AddRandom);
  } else if (dice < 95) {
    add(1, &Workload::AddClone);
  } else {
    add(Dice(3), &Workload::AddRandom);
    add(1 + Dice(2), &Workload::AddChangeOfNamespaces);
    add(Dice(3), &Workload::AddRandom);
  }
  return Commit(&write, Mode());
}

}  // namespace varve::testing
