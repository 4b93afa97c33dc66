// The history of every key is that of a model, as far back as versions are kept, and what was
// deleted is found again: across flushes, merges, openings, emptied and swapped namespaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/rounds.h"
#include "unit-tests/testing/test_store.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;
using testing::ManualClock;
using testing::TestStore;

constexpr NamespaceId kSwappedSpaces[] = {kDefaultNamespace, 1};
constexpr HistoryLimits kOneDay{.time_ms = 86'400'000};

EngineOptions KeepingByClock(const HistoryLimits& limits, const ManualClock* clock) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 16u << 10;
  options.segment_size = 8u << 10;
  options.runs_per_level = 2;
  options.history = limits;
  options.clock = clock;
  return options;
}

struct WrittenValue {
  std::string bytes;
  uint64_t expiry_ms = 0;
  SequenceNumber version = kNoSequence;  // of the write that put it
  Kind kind = Kind::kSet;
};

struct Event {
  Kind kind = Kind::kSet;
  SequenceNumber version = kNoSequence;
  uint64_t instant_ms = 0;
  std::optional<WrittenValue> value;  // from then on
};

// What happened to every key of the namespaces. All writes at one instant of the clock have it.
class KeyHistoryModel {
 public:
  explicit KeyHistoryModel(const ManualClock* clock) : clock_(*clock) {}

  // Ends the keys whose time is over. Requires: it is called after each move of the clock.
  void Expire() {
    for (const NamespaceId space : kSwappedSpaces) {
      for (auto& [key, value] : Copy(space)) {
        if (value.expiry_ms != 0 && value.expiry_ms <= clock_.WallMillis())
          End(space, key, Kind::kExpired, newest_, value.expiry_ms);
      }
    }
  }
  void Put(NamespaceId space, const std::string& key, const WrittenValue& value) {
    newest_ = std::max(newest_, value.version);
    now_[space][key] = value;
    events_[space][key].push_back({value.kind, value.version, clock_.WallMillis(), value});
  }
  void Delete(NamespaceId space, const std::string& key, Kind kind, SequenceNumber version) {
    newest_ = std::max(newest_, version);
    if (now_[space].contains(key)) End(space, key, kind, version, clock_.WallMillis());
  }
  void DeleteFrom(NamespaceId space, const std::string& begin, const std::string& end, Kind kind,
                  SequenceNumber version) {
    newest_ = std::max(newest_, version);
    for (auto& [key, value] : Copy(space)) {
      if (key >= begin && (end.empty() || key < end)) Delete(space, key, kind, version);
    }
  }
  void Swap(SequenceNumber version) {
    newest_ = version;
    const std::map<std::string, WrittenValue> before[] = {Copy(kSwappedSpaces[0]),
                                                          Copy(kSwappedSpaces[1])};
    for (const size_t to : {0, 1}) {
      const size_t from = 1 - to;
      for (const auto& [key, value] : before[to]) {
        if (!before[from].contains(key)) Delete(kSwappedSpaces[to], key, Kind::kSwap, version);
      }
      for (const auto& [key, value] : before[from]) {
        now_[kSwappedSpaces[to]][key] = value;
        events_[kSwappedSpaces[to]][key].push_back(
            {Kind::kSwap, version, clock_.WallMillis(), value});
      }
    }
  }
  const std::map<std::string, WrittenValue>& Now(NamespaceId space) { return now_[space]; }

  // Returns the history that a reader sees whose oldest version is `first`, newest first.
  std::vector<Event> HistoryOf(NamespaceId space, const std::string& key, SequenceNumber first,
                               uint64_t first_ms) {
    std::vector<Event> seen;
    std::optional<WrittenValue> oldest;  // what the key had then
    for (const Event& event : events_[space][key]) {
      const bool is_newer =
          event.kind == Kind::kExpired ? event.instant_ms > first_ms : event.version > first;
      if (is_newer) {
        seen.push_back(event);
      } else {
        oldest = event.value;
      }
    }
    if (oldest) seen.insert(seen.begin(), {oldest->kind, oldest->version, 0, oldest});
    std::reverse(seen.begin(), seen.end());
    return seen;
  }
  // Returns what comes back of the key, if it is missing and has a value to come back.
  std::optional<WrittenValue> Removed(NamespaceId space, const std::string& key,
                                      SequenceNumber first, uint64_t first_ms) {
    if (now_[space].contains(key)) return std::nullopt;
    for (const Event& event : HistoryOf(space, key, first, first_ms)) {
      if (!event.value) continue;
      const uint64_t expiry_ms = event.value->expiry_ms;
      if (expiry_ms != 0 && expiry_ms <= clock_.WallMillis()) return std::nullopt;
      return event.value;
    }
    return std::nullopt;
  }
  SequenceNumber newest() const { return newest_; }

 private:
  std::map<std::string, WrittenValue> Copy(NamespaceId space) { return now_[space]; }
  void End(NamespaceId space, const std::string& key, Kind kind, SequenceNumber version,
           uint64_t instant_ms) {
    now_[space].erase(key);
    events_[space][key].push_back({kind, version, instant_ms, std::nullopt});
  }

  const ManualClock& clock_;
  SequenceNumber newest_ = kNoSequence;
  std::map<NamespaceId, std::map<std::string, WrittenValue>> now_;
  std::map<NamespaceId, std::map<std::string, std::vector<Event>>> events_;  // oldest first
};

std::string EventText(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) {
    text += fmt::format("({} {} {} {}) ", static_cast<int>(event.kind),
                        event.kind == Kind::kExpired ? event.instant_ms : event.version,
                        event.value ? event.value->bytes.size() : 0,
                        event.value ? event.value->expiry_ms : 0);
  }
  return text;
}
std::string EventText(const std::vector<KeyEvent>& events) {
  std::string text;
  for (const KeyEvent& event : events) {
    text += fmt::format("({} {} {} {}) ", static_cast<int>(event.kind),
                        event.kind == Kind::kExpired ? event.instant_ms : event.version,
                        event.value_size, event.expiry_ms);
  }
  return text;
}

class KeyHistoryTest : public ::testing::Test {
 protected:
  void Open(const HistoryLimits& limits) {
    store_ = std::make_unique<TestStore>(KeepingByClock(limits, &clock_));
    WriteBatch batch;
    batch.CreateNamespace({.id = kSwappedSpaces[1]});
    ASSERT_TRUE((*store_)->Write({}, &batch).ok());
  }
  static std::string KeyOf(uint64_t i) { return fmt::format("key{:03}", i); }
  std::string Key() { return KeyOf(random_() % kKeys); }
  SequenceNumber Commit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> committed = (*store_)->Write({}, batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed.ok() ? committed->sequence : kNoSequence;
  }

  void PutSome(NamespaceId space) {
    WriteBatch batch;
    batch.UseNamespace(space);
    std::vector<std::pair<std::string, WrittenValue>> put;
    for (uint64_t i = 0; i <= random_() % 3; ++i) {
      const size_t size = random_() % 10 == 0 ? 1100 : random_() % 30;
      WrittenValue value{.bytes = std::string(size, static_cast<char>('a' + random_() % 26))};
      if (random_() % 3 == 0) value.expiry_ms = clock_.WallMillis() + 1000 * (1 + random_() % 60);
      put.emplace_back(Key(), value);
      batch.Put(put.back().first, value.bytes, {.expiry_ms = value.expiry_ms});
    }
    SequenceNumber version = Commit(&batch) - put.size();
    for (auto& [key, value] : put) {
      value.version = ++version;
      model_.Put(space, key, value);
    }
  }
  void ChangeExpiry(NamespaceId space) {
    const std::string key = Key();
    const auto found = model_.Now(space).find(key);
    if (found == model_.Now(space).end()) return;
    WrittenValue value = found->second;
    value.kind = Kind::kExpire;
    value.expiry_ms = clock_.WallMillis() + 1000 * (1 + random_() % 60);
    WriteBatch batch;
    batch.Put(key, value.bytes, {.expiry_ms = value.expiry_ms, .cause = WriteCause::kExpiryChange},
              space);
    value.version = Commit(&batch);
    model_.Put(space, key, value);
  }
  void Undelete(NamespaceId space) {
    const std::string key = Key();
    const absl::StatusOr<RemovedKeys> removed =
        (*store_)->FindRemoved({.space = space, .lower = key, .upper = key + '\0'});
    ASSERT_TRUE(removed.ok()) << removed.status();
    if (removed->keys.empty()) return;
    const RemovedKey& again = removed->keys.front();
    WriteBatch batch;
    batch.RequireNotPut(key, removed->read_sequence, space);
    batch.Put(key, again.value, {.expiry_ms = again.expiry_ms}, space);
    const SequenceNumber version = Commit(&batch);
    model_.Put(space, key, {again.value, again.expiry_ms, version});
  }
  void WriteSomething(NamespaceId space) {
    const uint64_t choice = random_() % 100;
    WriteBatch batch;
    batch.UseNamespace(space);
    if (choice < 50) return PutSome(space);
    if (choice < 60) return ChangeExpiry(space);
    if (choice < 65) return Undelete(space);
    if (choice < 85) {
      const std::string key = Key();
      const WriteCause cause = random_() % 5 == 0 ? WriteCause::kEvicted : WriteCause::kWrite;
      batch.Delete(key, space, cause);
      const Kind kind = cause == WriteCause::kEvicted ? Kind::kEvicted : Kind::kDelete;
      return model_.Delete(space, key, kind, Commit(&batch));
    }
    if (choice < 93) {
      const std::string begin = Key(), end = begin + "5";
      batch.DeleteRange(begin, end);
      return model_.DeleteFrom(space, begin, end, Kind::kDeleteRange, Commit(&batch));
    }
    if (choice < 96) {
      batch.ClearNamespace(space);
      return model_.DeleteFrom(space, "", "", Kind::kFlush, Commit(&batch));
    }
    if (choice < 98) {
      batch.SwapNamespaces(kSwappedSpaces[0], kSwappedSpaces[1]);
      return model_.Swap(Commit(&batch));
    }
    clock_.Advance(1000 * (1 + random_() % 20));
    model_.Expire();
  }
  void DoSomethingElse() {
    switch (random_() % 40) {
      case 0:
        ASSERT_TRUE((*store_)->Flush().ok());
        break;
      case 1:
        ASSERT_TRUE((*store_)->Compact({}, {}, kSwappedSpaces[random_() % 2]).ok());
        break;
      case 2:
        store_->Reopen();
        break;
      case 3:
        ASSERT_TRUE((*store_)->Push().ok());
        store_->Open();  // without a clean end
        break;
      default:
        break;
    }
  }

  void Check(NamespaceId space, const std::string& key) {
    const SequenceNumber first = *(*store_)->FirstVersion(space);
    const uint64_t first_ms = *(*store_)->InstantOf(first);
    const absl::StatusOr<KeyHistory> history = (*store_)->HistoryOf(space, key);
    ASSERT_TRUE(history.ok()) << history.status();
    const std::vector<Event> wanted = model_.HistoryOf(space, key, first, first_ms);
    ASSERT_EQ(EventText(history->events), EventText(wanted))
        << space << " " << key << " first " << first;
    for (size_t most : {0u, 1u, 3u}) {
      const KeyHistory part = *(*store_)->HistoryOf(space, key, most);
      ASSERT_EQ(part.events.size(), std::min(most, history->events.size()));
      EXPECT_EQ(part.more, most < history->events.size());
    }
    if (model_.Now(space).contains(key)) {
      EXPECT_EQ(history->state, KeyState::kFound);
    } else if (!wanted.empty()) {
      EXPECT_EQ(history->state,
                wanted.front().kind == Kind::kExpired ? KeyState::kExpired : KeyState::kDeleted);
    } else {
      EXPECT_NE(history->state, KeyState::kFound);
    }
    CheckReads(space, key, first, history->events);
  }
  // What an event says is what a reader finds at its version.
  void CheckReads(NamespaceId space, const std::string& key, SequenceNumber first,
                  const std::vector<KeyEvent>& events) {
    for (const KeyEvent& event : events) {
      if (event.version < first || event.kind == Kind::kExpired) continue;
      const auto snapshot = (*store_)->SnapshotAt(space, event.version);
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      std::string value;
      const ReadResult read =
          *(*store_)->Get({.snapshot = snapshot->get(), .space = space}, key, &value);
      EXPECT_EQ(read.found, event.has_value) << key << " at " << event.version;
      EXPECT_EQ(value.size(), event.value_size);
      if (read.found) EXPECT_EQ(read.expiry_ms, event.expiry_ms);
      const KeyHistory then = *(*store_)->HistoryOf(space, key, SIZE_MAX, snapshot->get());
      ASSERT_FALSE(then.events.empty());
      EXPECT_EQ(then.events.front().version, event.version);
    }
  }
  void CheckRemoved(NamespaceId space) {
    const SequenceNumber first = *(*store_)->FirstVersion(space);
    const uint64_t first_ms = *(*store_)->InstantOf(first);
    const absl::StatusOr<RemovedKeys> removed =
        (*store_)->FindRemoved({.space = space, .lower = KeyOf(5), .upper = KeyOf(kKeys - 5)});
    ASSERT_TRUE(removed.ok()) << removed.status();
    std::string found, wanted;
    for (const RemovedKey& each : removed->keys) {
      found += fmt::format("{} {} {} {}\n", each.key, each.version, each.expiry_ms,
                           each.value.substr(0, 20) + fmt::to_string(each.value.size()));
    }
    for (uint64_t i = 5; i < kKeys - 5; ++i) {
      if (const auto value = model_.Removed(space, KeyOf(i), first, first_ms)) {
        wanted += fmt::format("{} {} {} {}\n", KeyOf(i), value->version, value->expiry_ms,
                              value->bytes.substr(0, 20) + fmt::to_string(value->bytes.size()));
      }
    }
    EXPECT_EQ(found, wanted) << "namespace " << space << ", first " << first;
  }
  // Waits until the horizon is where the clock wants it. It stays there until something is written
  // or the clock advances.
  void SettleHorizon() {
    for (const NamespaceId space : kSwappedSpaces)
      ASSERT_TRUE((*store_)->Compact("nothing", "nothing is here", space).ok());
  }
  void CheckAll() {
    SettleHorizon();
    for (const NamespaceId space : kSwappedSpaces) {
      for (uint64_t i = 0; i < kKeys && !HasFailure(); ++i) Check(space, KeyOf(i));
      CheckRemoved(space);
    }
  }
  void Run(int steps, uint64_t most_millis) {
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      WriteSomething(kSwappedSpaces[random_() % 2]);
      DoSomethingElse();
      if (most_millis > 0) {
        clock_.Advance(random_() % (most_millis / 1000) * 1000);
        model_.Expire();
      }
      if (i % 50 == 0) {
        SettleHorizon();
        for (int k = 0; k < 5; ++k) Check(kSwappedSpaces[random_() % 2], Key());
        CheckRemoved(kSwappedSpaces[random_() % 2]);
      }
    }
  }

  static constexpr uint64_t kKeys = 40;
  std::mt19937_64 random_{::testing::UnitTest::GetInstance()->random_seed() + 1u};
  ManualClock clock_;
  std::unique_ptr<TestStore> store_;
  KeyHistoryModel model_{&clock_};
};

TEST_F(KeyHistoryTest, TheHistoryOfEveryKeyIsTheModels) {
  Open(kOneDay);
  Run(testing::Rounds(1200), 0);
  CheckAll();
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  store_->Reopen();
  CheckAll();
}

TEST_F(KeyHistoryTest, ItEndsAtTheHorizon) {
  Open({.time_ms = 60'000});
  Run(1200, 2000);
  ASSERT_TRUE((*store_)->Flush().ok());
  EXPECT_GT(*(*store_)->FirstVersion(0), model_.newest() / 2);
  for (const NamespaceId space : kSwappedSpaces)
    ASSERT_TRUE((*store_)->Compact({}, {}, space).ok());
  CheckAll();
}

// What EXPLAIN GET tells of a missing key.
class KeyStateTest : public KeyHistoryTest {
 protected:
  KeyState StateOf(std::string_view key, NamespaceId space = kDefaultNamespace,
                   const Snapshot* snapshot = nullptr) {
    const auto read = (*store_)->ExplainGet({.snapshot = snapshot, .space = space}, key);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->state : KeyState::kFound;
  }
  SequenceNumber Put(std::string_view key, uint64_t expiry_ms = 0) {
    WriteBatch batch;
    batch.Put(key, "value", {.expiry_ms = expiry_ms});
    return Commit(&batch);
  }
};

TEST_F(KeyStateTest, TheWaysInWhichAKeyIsMissingAreToldApart) {
  Open(kOneDay);
  EXPECT_EQ(StateOf("never"), KeyState::kNeverThere);
  const SequenceNumber put = Put("deleted");
  Put("expired", clock_.WallMillis() + 5'000);
  Put("found");
  ASSERT_TRUE((*store_)->Delete("deleted").ok());
  const SequenceNumber deleted = *(*store_)->FirstVersion(0) + 4;
  clock_.Advance(10'000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(StateOf("found"), KeyState::kFound);
    EXPECT_EQ(StateOf("deleted"), KeyState::kDeleted);
    EXPECT_EQ(StateOf("expired"), KeyState::kExpired);
    EXPECT_EQ(StateOf("never"), KeyState::kNeverThere);
    EXPECT_EQ(StateOf("never", 1), KeyState::kNeverThere);
    EXPECT_EQ(StateOf("deleted", 0, (*store_)->SnapshotAt(0, put)->get()), KeyState::kFound);
    EXPECT_EQ(StateOf("deleted", 0, (*store_)->SnapshotAt(0, put - 1)->get()),
              KeyState::kNeverThere);
    EXPECT_EQ(StateOf("deleted", 0, (*store_)->SnapshotAt(0, deleted)->get()), KeyState::kDeleted);
    if (i == 0) ASSERT_TRUE((*store_)->Compact({}, {}).ok());
    if (i == 1) store_->Reopen();
  }
  EXPECT_TRUE(IsNoSuchNamespace((*store_)->HistoryOf(7, "key").status()));
  EXPECT_TRUE(IsNoSuchNamespace((*store_)->FindRemoved({.space = 7}).status()));
}

TEST_F(KeyStateTest, BelowTheHorizonNobodyCanTell) {
  Open({.time_ms = 60'000});
  Put("gone");
  ASSERT_TRUE((*store_)->Delete("gone").ok());
  clock_.Advance(120'000);
  Put("other");
  ASSERT_TRUE((*store_)->Flush().ok());
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  for (const bool reopened : {false, true}) {
    if (reopened) store_->Reopen();
    EXPECT_EQ(StateOf("gone"), KeyState::kBelowHorizon);
    EXPECT_EQ(StateOf("never"), KeyState::kBelowHorizon);
    EXPECT_TRUE((*store_)->HistoryOf(0, "gone")->events.empty());
    EXPECT_TRUE((*store_)->FindRemoved({})->keys.empty());
  }
}

TEST_F(KeyStateTest, WithoutAHistoryNobodyCanTell) {
  Open({});
  Put("gone");
  ASSERT_TRUE((*store_)->Delete("gone").ok());
  Put("there");
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  EXPECT_EQ(StateOf("gone"), KeyState::kBelowHorizon);
  EXPECT_EQ(StateOf("there"), KeyState::kFound);
  EXPECT_EQ((*store_)->HistoryOf(0, "there")->events.size(), 1u);
  EXPECT_TRUE((*store_)->FindRemoved({})->keys.empty());
}

TEST_F(KeyStateTest, ACloneShowsWhatItInherited) {
  Open(kOneDay);
  const SequenceNumber inherited = Put("inherited");
  Put("deleted");
  ASSERT_TRUE((*store_)->Delete("deleted").ok());
  WriteBatch batch;
  batch.CloneNamespace(0, {.id = 5});
  Commit(&batch);
  Put("inherited");
  batch.Delete("inherited", 5);
  const SequenceNumber gone = Commit(&batch);
  for (int i = 0; i < 3; ++i) {
    const KeyHistory history = *(*store_)->HistoryOf(5, "inherited");
    ASSERT_EQ(history.events.size(), 2u);
    EXPECT_EQ(history.events[0].kind, Kind::kDelete);
    EXPECT_EQ(history.events[0].version, gone);
    EXPECT_EQ(history.events[1].kind, Kind::kSet);
    EXPECT_EQ(history.events[1].version, inherited);
    const RemovedKeys removed = *(*store_)->FindRemoved({.space = 5});
    ASSERT_EQ(removed.keys.size(), 1u) << "what the source deleted was never in the clone";
    EXPECT_EQ(removed.keys[0].key, "inherited");
    EXPECT_EQ(removed.keys[0].value, "value");
    EXPECT_EQ(StateOf("never", 5), KeyState::kNeverThere);
    EXPECT_EQ((*store_)->HistoryOf(0, "inherited")->events.size(), 2u);
    if (i == 0) ASSERT_TRUE((*store_)->Compact({}, {}).ok());
    if (i == 1) store_->Reopen();
  }
}

TEST_F(KeyStateTest, ADroppedDatabaseThatIsMadeAnewIsEmptyAndItsKeysComeBack) {
  Open(kOneDay);
  WriteBatch batch;
  batch.Put("key", "value", 1);
  Commit(&batch);
  batch.DropNamespace(1);
  Commit(&batch);
  batch.CreateNamespace({.id = 1});
  Commit(&batch);
  const KeyHistory history = *(*store_)->HistoryOf(1, "key");
  ASSERT_EQ(history.events.size(), 2u);
  EXPECT_EQ(history.events[0].kind, Kind::kDrop);
  EXPECT_EQ(history.state, KeyState::kDeleted);
  EXPECT_EQ((*store_)->FindRemoved({.space = 1})->keys.size(), 1u);
}

// A clock that was set back wrote a version behind newer instants: readers of the past find the key
// expired there, and those of the present do not.
TEST_F(KeyStateTest, AKeyThatIsThereDoesNotComeBackWhateverTheClockSays) {
  Open(kOneDay);
  Put("key");
  clock_.Advance(100'000);
  Put("other");
  clock_.SetWall(ManualClock::kStart);
  store_->Reopen();
  WriteBatch batch;
  batch.Put("key", "newer", {.expiry_ms = ManualClock::kStart + 50'000});
  const SequenceNumber version = Commit(&batch);
  ASSERT_EQ(store_->Get("key"), "newer");
  EXPECT_TRUE((*store_)->FindRemoved({})->keys.empty());
  const KeyHistory history = *(*store_)->HistoryOf(0, "key");
  EXPECT_EQ(history.state, KeyState::kFound);
  ASSERT_EQ(history.events.size(), 2u);
  EXPECT_EQ(history.events[0].version, version);
  EXPECT_TRUE(history.events[0].has_value);
}

TEST_F(KeyStateTest, AKeyOfManyVersionsIsReadInParts) {
  Open(kOneDay);
  constexpr size_t kVersions = 5000;
  for (size_t i = 0; i < kVersions; ++i) Put("key");
  ASSERT_TRUE((*store_)->Delete("key").ok());
  EXPECT_EQ((*store_)->HistoryOf(0, "key")->events.size(), kVersions + 1);
  EXPECT_TRUE((*store_)->HistoryOf(0, "key", 10)->more);
  EXPECT_EQ((*store_)->FindRemoved({})->keys.size(), 1u);
  EXPECT_TRUE(absl::IsOutOfRange((*store_)->FindRemoved({.most_keys = 0}).status()));
  EXPECT_TRUE(absl::IsOutOfRange((*store_)->FindRemoved({.most_bytes = 7}).status()));
  EXPECT_TRUE((*store_)->FindRemoved({.most_keys = 1, .most_bytes = 8}).ok());
}

}  // namespace
}  // namespace varve
