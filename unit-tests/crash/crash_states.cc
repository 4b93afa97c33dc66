#include "unit-tests/crash/crash_states.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <unordered_set>
#include <utility>

#include "db/changes/change_file.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/history/time_file.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "unit-tests/crash/feed_reader.h"
#include "unit-tests/crash/past.h"
#include "unit-tests/crash/workload.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve::testing {
namespace {

// Of a recovery's changes, one in so many is a place to crash.
constexpr uint64_t kChangesPerRecoveryCrash = 6;
constexpr uint64_t kStatesPerRecovery = 16;  // of so many states, one has its recovery crashed
constexpr int kStepsAfterwards = 4;
constexpr uint64_t kPastsPerState = 4;  // parts of the past, the ends of which are read
constexpr uint64_t kLongerThanMostKeysLive = 7'200'000;  // ms

uint64_t Mixed(uint64_t a, uint64_t b) {
  const uint64_t both[] = {a, b};
  return HashKey({reinterpret_cast<const char*>(both), sizeof(both)});
}

absl::Status Bad(const std::string& what) { return absl::FailedPreconditionError(what); }

// Where the machine's clock may be after a crash: set back, as it was, or later.
void SetClock(const Known& known, uint64_t dice, ManualClock* clock) {
  const uint64_t before =
      known.clocks.empty() ? ManualClock::kStart : known.clocks.back().instant_ms;
  switch (dice % 4) {
    case 0:
      return clock->SetWall(ManualClock::kStart - uint64_t{30} * 86'400'000);
    case 1:
      return clock->SetWall(ManualClock::kStart);
    case 2:
      return clock->SetWall(before);
    default:
      return clock->SetWall(before + dice / 4 % 40 * 500);
  }
}

// Reads the changes from `first` on. The retention may pass over it meanwhile, as the store flushes
// what it recovered; then what is left is read.
absl::Status ReadAllChanges(StorageEngine* store, SequenceNumber first, SequenceNumber last,
                            const History& history, std::optional<FeedReader>* reader) {
  for (;;) {
    if (history.At(first) == nullptr) return Bad("the change feed begins in the middle of a batch");
    reader->emplace(last, last);
    (*reader)->StartAt(first, history);
    absl::Status status;
    for (bool at_end = false; !at_end && status.ok();)
      status = (*reader)->ReadSome(store, history, &at_end);
    const std::optional<SequenceNumber> risen = FirstOfTrimmed(status);
    if (!risen || *risen <= first) return status;
    first = *risen;
  }
}

// A reader of the change feed who begins with what the store held at its beginning has what the
// store holds in the end. The place of the user's feed is where he left it, and can be read from.
absl::Status CheckChanges(StorageEngine* store, SequenceNumber last, const History::Bounds& bounds,
                          const History& history) {
  const absl::StatusOr<ChangePositions> positions = store->GetChangePositions();
  const std::vector<FeedPlace> feeds = store->Feeds();
  if (bounds.feed.must_exist && feeds.empty()) return Bad("the feed is gone");
  if (!bounds.feed.may_exist && !feeds.empty()) return Bad("there is a feed that nobody made");
  if (absl::IsFailedPrecondition(positions.status()) && feeds.empty()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(positions.status());
  for (const FeedPlace& feed : feeds) {
    if (feed.lost || feed.position < bounds.feed.least || feed.position > bounds.feed.most ||
        feed.position < positions->first) {
      return Bad(fmt::format("the feed is{} at {}, not between {} and {}, and changes begin at {}",
                             feed.lost ? " lost" : "", feed.position, bounds.feed.least,
                             bounds.feed.most, positions->first));
    }
  }
  std::optional<FeedReader> reader;
  VARVE_RETURN_IF_ERROR(ReadAllChanges(store, positions->first, last, history, &reader));
  if (reader->position() < last) return Bad("the change feed ends before the store");
  return reader->CheckCopy(history);
}

// The store tells of its past what is in the history, which leads to `last`.
absl::Status CheckOldVersions(StorageEngine* store, SequenceNumber last, const Known& known,
                              const History& history) {
  for (uint64_t part = 1; part < kPastsPerState; ++part) {
    const SequenceNumber version = history.BatchAt(last * part / kPastsPerState);
    VARVE_RETURN_IF_ERROR(CheckPast(store, version, *history.At(version)));
  }
  const KnownPast past{history, last, known};
  const auto& spaces = history.At(last)->spaces;
  const NamespaceId space =
      std::next(spaces.begin(), static_cast<ptrdiff_t>(last % spaces.size()))->first;
  VARVE_RETURN_IF_ERROR(CheckKeyHistory(store, past, space, fmt::format("key{}", last % 60)));
  VARVE_ASSIGN_OR_RETURN(const RemovedKeys removed, store->FindRemoved({.space = space}));
  return CheckRemoved(store, past, space, {}, {}, removed);
}

// What a crash left is one of the states that it may leave: the end of its last batch. `*gone`: as
// CheckContents.
absl::StatusOr<SequenceNumber> CheckOpened(StorageEngine* store, const History::Bounds& bounds,
                                           const History& history, std::vector<Value>* gone) {
  const SequenceNumber sequence = StatisticOf(*store, "recovered_sequence");
  const SequenceNumber last = history.BatchAt(sequence);
  if (sequence < bounds.least) {
    return Bad(fmt::format("{} was acknowledged, and only {} is there", bounds.least, sequence));
  }
  if (last > bounds.most)
    return Bad(fmt::format("{} is there, and only {} was sent", last, bounds.most));
  const Contents* const contents = history.At(sequence);
  if (contents == nullptr) return Bad(fmt::format("{} is in the middle of a batch", sequence));
  if (absl::Status status = CheckContents(store, *contents, bounds.known, gone); !status.ok()) {
    return Bad(fmt::format("at {} (acknowledged: {}, sent: {}): {}", sequence, bounds.least,
                           bounds.most, std::string(status.message())));
  }
  absl::Status status = CheckOldVersions(store, last, bounds.known, history);
  if (status.ok()) status = CheckChanges(store, sequence, bounds, history);
  if (!status.ok()) return Bad(fmt::format("at {}: {}", sequence, std::string(status.message())));
  return last;
}

// A store that was closed consists of what its manifest names.
absl::Status CheckFiles(SimulatedFileSystem* file_system) {
  VARVE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(file_system, kStoreDirectory));
  std::set<std::string> expected = {"LOCK", "MANIFEST", "MANIFEST.copy"};
  for (const LogEnd& end : manifest.log_ends) expected.insert(LogFileName(end.file_number));
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        expected.insert(
            SegmentPath(kStoreDirectory, segment.number).substr(kStoreDirectory.size() + 1));
        for (const ValueReference& file : segment.value_files) {
          if (expected.contains(LogFileName(file.file_number))) continue;  // still the log's
          expected.insert(
              ValueFilePath(kStoreDirectory, file.file_number).substr(kStoreDirectory.size() + 1));
        }
      }
    }
  }
  if (manifest.times.number != 0) {
    expected.insert(
        TimeFilePath(kStoreDirectory, manifest.times.number).substr(kStoreDirectory.size() + 1));
    VARVE_RETURN_IF_ERROR(ReadTimeFile(file_system, kStoreDirectory, manifest.times).status());
  }
  for (const ChangeFilePlace& place : manifest.changes.files) {
    expected.insert(
        ChangeFilePath(kStoreDirectory, place.number).substr(kStoreDirectory.size() + 1));
    ChangeFile file(file_system, kStoreDirectory, place.number, /*remover=*/nullptr);
    VARVE_RETURN_IF_ERROR(file.Verify(place.size, place.after, place.last));
  }
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(kStoreDirectory));
  for (const std::string& name : names) {
    if (expected.erase(name) == 0) return Bad(name + " belongs to nobody");
  }
  return expected.empty() ? absl::OkStatus()
                          : Bad(*expected.begin() + " is missing after a clean stop");
}

}  // namespace

CrashStates::CrashStates(uint64_t seed, int steps)
    : seed_(seed), steps_(steps), first_(EmptyDisk()) {
  SetUpLibraries();
  const DeterministicThreads threads(seed);
  SimulatedFileSystem file_system(first_, &DeterministicThreads::MaySwitch);
  {
    ManualClock clock;
    Workload workload(seed, &file_system, &history_, &clock);
    workload.UseIngestsAndChanges();
    status_ = workload.Open();
    if (status_.ok()) status_ = workload.Run(steps);
    if (status_.ok() && workload.errors() > 0) status_ = workload.last_error();
    if (status_.ok()) status_ = workload.Close();
    done_ = workload.done();
    if (status_.ok()) status_ = CheckFiles(&file_system);
  }
  trace_ = file_system.trace();
}

uint64_t CrashStates::Fingerprint() const {
  uint64_t hash = 0;
  for (const DiskEvent& event : trace_) {
    hash = Mixed(hash, static_cast<uint64_t>(event.type));
    hash = Mixed(hash, event.inode);
    hash = Mixed(hash, event.offset);
    hash = Mixed(hash, HashKey(event.path));
    hash = Mixed(hash, HashKey(event.to));
    if (event.data != nullptr) hash = Mixed(hash, HashKey(*event.data));
  }
  return hash;
}

CrashStates::State CrashStates::MakeState(const SimulatedDisk& at_change, uint64_t index) const {
  const uint64_t at = index / kStatesPerChange, variant = index % kStatesPerChange;
  State state;
  state.index = index;
  state.bounds = history_.After(at, /*power_was_cut=*/variant != 0);
  state.least_after_power_cut = history_.After(at, /*power_was_cut=*/true).least;
  if (variant == 0) {
    state.disk = at_change;
  } else if (variant - 1 <= SimulatedDisk::kKeepContents) {
    state.disk = at_change.CutPower(variant - 1);
  } else {
    state.disk = at_change.CutPower(Mixed(seed_, index) | 4);  // beyond the four plain ways
  }
  return state;
}

absl::Status CrashStates::CheckAll(uint64_t most, Counts* counts) {
  SimulatedDisk disk = first_;
  std::unordered_set<uint64_t> seen, distinct;
  // Without limits all states; else each with the same chance, drawn from the seed.
  const double share = std::min(1.0, static_cast<double>(most) / static_cast<double>(size()) * 1.7);
  for (uint64_t at = 0; at <= trace_.size(); ++at) {
    if (at > 0) disk.Apply(trace_[at - 1]);
    const bool loses_something = disk.HasUnsynced();
    for (uint64_t variant = 0; variant < (loses_something ? kStatesPerChange : 1); ++variant) {
      const uint64_t index = at * kStatesPerChange + variant;
      if (static_cast<double>(Mixed(index, seed_) % 1'000'000) >= share * 1'000'000) continue;
      const State state = MakeState(disk, index);
      const uint64_t hash = state.disk.Hash();
      if (!seen.insert(Mixed(hash, state.bounds.least)).second) continue;
      if (absl::Status status = CheckState(state, &counts->in_recovery); !status.ok()) {
        return Bad(fmt::format("crash state {} of seed {} with {} steps, after {} changes: {}",
                               index, seed_, steps_, at, std::string(status.message())));
      }
      if (!distinct.insert(hash).second) continue;
      ++counts->distinct;
      if (variant == 0) ++counts->kills;
      if (distinct.size() == most) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

std::string CrashStates::Describe(uint64_t index, uint64_t count) const {
  static constexpr const char* kNames[] = {"make directory", "create",     "rename",        "link",
                                           "remove",         "write",      "truncate",      "sync",
                                           "sync write",     "sync fails", "sync directory"};
  const uint64_t end = std::min<uint64_t>(index / kStatesPerChange, trace_.size());
  std::map<uint64_t, std::string> paths;
  uint64_t next_inode = first_.next_inode();
  SimulatedDisk disk = first_;
  std::string text;
  for (uint64_t at = 0; at < end; ++at) {
    const DiskEvent& event = trace_[at];
    disk.Apply(event);
    if (event.type == DiskEvent::Type::kMakeDirectory || event.type == DiskEvent::Type::kCreate) {
      paths[next_inode++] = event.path;
    } else if (event.type == DiskEvent::Type::kRename) {
      paths[*disk.Find(event.to)] = event.to;
    }
    if (at + count < end) continue;
    const History::Bounds bounds = history_.After(at + 1, /*power_was_cut=*/true);
    text += fmt::format("{:6} {} {}", at + 1, kNames[static_cast<size_t>(event.type)],
                        event.path.empty() ? paths[event.inode] : event.path);
    if (!event.to.empty()) text += " to " + event.to;
    if (event.data != nullptr)
      text += fmt::format(" [{}, {})", event.offset, event.offset + event.data->size());
    text += fmt::format("   (acknowledged {}, sent {})\n", bounds.least, bounds.most);
  }
  return text;
}

absl::Status CrashStates::Check(uint64_t index) {
  SimulatedDisk disk = first_;
  for (uint64_t at = 0; at < std::min<uint64_t>(index / kStatesPerChange, trace_.size()); ++at)
    disk.Apply(trace_[at]);
  uint64_t in_recovery = 0;
  return CheckState(MakeState(disk, index), &in_recovery);
}

absl::Status CrashStates::CheckState(const State& state, uint64_t* deep) const {
  const uint64_t dice = Mixed(state.index, seed_ + 1);
  History after(&history_);
  after.Inherit(state.bounds);
  std::vector<DiskEvent> trace;
  ManualClock clock;
  SetClock(state.bounds.known, dice / 7, &clock);
  {
    const DeterministicThreads threads(dice, 16);
    SimulatedFileSystem file_system(state.disk, &DeterministicThreads::MaySwitch);
    {
      VARVE_ASSIGN_OR_RETURN(
          const std::unique_ptr<StorageEngine> store,
          StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, &file_system, &clock)));
      const uint64_t opened_at = file_system.trace_size();
      after.ClockIs(store->NowMillis(), 0);
      std::vector<Value> gone;
      VARVE_ASSIGN_OR_RETURN(const SequenceNumber last,
                             CheckOpened(store.get(), state.bounds, history_, &gone));
      after.Sent(last, last, Durability::kAlways, *history_.At(last), 0);
      after.Acknowledged(last, Durability::kAlways, state.disk.HasUnsynced() ? opened_at : 0);
      after.SeenGone(gone, file_system.trace_size());
      if (dice % 2 == 0) {
        VARVE_RETURN_IF_ERROR(store->Close());
      } else {
        file_system.StopHere();
      }
    }
    file_system.GoOn();
    Workload workload(dice, &file_system, &after, &clock);
    VARVE_RETURN_IF_ERROR(workload.Open());
    VARVE_RETURN_IF_ERROR(workload.Run(kStepsAfterwards));
    VARVE_RETURN_IF_ERROR(workload.Put());
    if (workload.errors() > 0) return workload.last_error();
    VARVE_RETURN_IF_ERROR(workload.Check());
    if (dice % 3 == 0) {
      workload.PassTime(kLongerThanMostKeysLive);
      VARVE_RETURN_IF_ERROR(workload.Check());
    }
    VARVE_RETURN_IF_ERROR(workload.Close());
    VARVE_RETURN_IF_ERROR(CheckFiles(&file_system));
    trace = file_system.trace();
  }
  return dice / 2 % kStatesPerRecovery == 0 ? CheckRecoveries(state, trace, after, deep)
                                            : absl::OkStatus();
}

absl::Status CrashStates::CheckRecoveries(const State& state, const std::vector<DiskEvent>& trace,
                                          const History& history, uint64_t* deep) const {
  std::mt19937_64 random(Mixed(seed_, state.index));
  SimulatedDisk disk = state.disk;
  for (uint64_t at = 0; at < trace.size(); ++at) {
    disk.Apply(trace[at]);
    if (random() % kChangesPerRecoveryCrash != 0) continue;
    const uint64_t choice = random() % 8;
    const bool power_was_cut = choice != SimulatedDisk::kKeepAll;
    History::Bounds bounds = history.After(at + 1, power_was_cut);
    bounds.least = std::max(bounds.least, state.least_after_power_cut);
    const DeterministicThreads threads(random(), 16);
    SimulatedFileSystem file_system(power_was_cut ? disk.CutPower(choice) : disk,
                                    &DeterministicThreads::MaySwitch);
    ManualClock clock;
    SetClock(bounds.known, random(), &clock);
    const auto check = [&]() -> absl::Status {
      VARVE_ASSIGN_OR_RETURN(
          const std::unique_ptr<StorageEngine> store,
          StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, &file_system, &clock)));
      VARVE_RETURN_IF_ERROR(CheckOpened(store.get(), bounds, history, nullptr).status());
      return store->Close();
    };
    absl::Status status = check();
    if (status.ok()) status = CheckFiles(&file_system);
    if (!status.ok()) {
      return Bad(fmt::format("after {} changes of its recovery, with what is left by choice {}: {}",
                             at + 1, choice, std::string(status.message())));
    }
    ++*deep;
  }
  return absl::OkStatus();
}

}  // namespace varve::testing
