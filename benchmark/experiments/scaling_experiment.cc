#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;
// At the end of the curve; twice the processors where that is more.
constexpr unsigned kFewestThreads = 16;
constexpr size_t kGroup = 16;

// One thread's share of a work: `operations`, with keys of its own choice.
using Part =
    std::function<void(Store* store, uint64_t entries, uint64_t operations, Random* random)>;

struct ScaledWork {
  std::string name;
  uint64_t operations;  // of all threads together
  Part part;
};

void Gets(Store* store, uint64_t entries, uint64_t operations, Random* random) {
  Key key;
  std::string value;
  for (uint64_t i = 0; i < operations; ++i) {
    const uint64_t number = random->Below(entries);
    const auto result = store->Get(ReadOptions(), key.Present(number), &value);
    CheckOk(result.status());
    if (!result->found || Value::Number(value) != number) Fail("a get gave a wrong answer");
  }
}

void MultiGets(Store* store, uint64_t entries, uint64_t operations, Random* random) {
  std::vector<Key> keys(kGroup);
  std::vector<uint64_t> numbers(kGroup);
  std::vector<std::string_view> wanted(kGroup);
  std::vector<MultiGetResult> results(kGroup);
  for (uint64_t i = 0; i < operations; i += kGroup) {
    for (size_t k = 0; k < kGroup; ++k)
      wanted[k] = keys[k].Present(numbers[k] = random->Below(entries));
    CheckOk(store->MultiGet(ReadOptions(), wanted, absl::MakeSpan(results)));
    for (size_t k = 0; k < kGroup; ++k) {
      CheckOk(results[k].status);
      if (!results[k].result.found || Value::Number(results[k].value) != numbers[k])
        Fail("a MultiGet gave a wrong answer");
    }
  }
}

Part Puts(Durability sync) {
  return [sync](Store* store, uint64_t entries, uint64_t operations, Random* random) {
    Key key;
    Value value(kValueSize);
    for (uint64_t i = 0; i < operations; ++i) {
      const uint64_t number = random->Below(entries);
      WriteBatch batch;
      batch.Put(key.Present(number), value.Of(number));
      CheckOk(store->Write({.sync = sync, .override_sync = true}, &batch).status());
    }
  };
}

// Of all threads: how often one had to wait (for a lock, for the disk), and how often one lost its
// processor.
struct Switches {
  double waits;
  double losses;

  static Switches Now() {
    rusage use;
    getrusage(RUSAGE_SELF, &use);
    return {static_cast<double>(use.ru_nvcsw), static_cast<double>(use.ru_nivcsw)};
  }
};

// Of the groups of commits that the store has timed: their batches, and for how long they held the
// lock that all writes share.
struct CommitLock {
  double batches = 0;
  double nanos = 0;

  static CommitLock Of(const Store& store) {
    CommitLock lock;
    for (const auto& [name, figure] : store.Statistics()) {
      if (name == "commit_lock_timed_batches") lock.batches = static_cast<double>(figure);
      if (name == "commit_lock_timed_nanos") lock.nanos = static_cast<double>(figure);
    }
    return lock;
  }
};

// Returns the nanoseconds that a cache line takes from a processor to another, in the quickest of
// some rounds. A virtual machine may have its processors moved at any time, near to each other or
// far, and what threads share costs accordingly.
double NanosOfLine() {
  constexpr uint64_t kTurns = 1000, kRounds = 20;
  if (std::thread::hardware_concurrency() < 2) return 0;
  std::atomic<uint64_t> turn{0};
  const auto take_turns = [&turn](uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; i += 2) {
      while (turn.load(std::memory_order_acquire) != i) {
      }
      turn.store(i + 1, std::memory_order_release);
    }
  };
  std::thread other(take_turns, 1, kTurns * kRounds);
  double quickest = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    take_turns(round * kTurns, (round + 1) * kTurns);
    const double nanos = SecondsSince(begin) * 1e9 / kTurns;
    quickest = round == 0 ? nanos : std::min(quickest, nanos);
  }
  other.join();
  return quickest;
}

void Measure(const ScaledWork& work, uint64_t entries, Store* store, std::vector<Point>* points) {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  double of_one = 0;
  for (unsigned threads = 1; threads <= std::max(kFewestThreads, 2 * processors); threads *= 2) {
    const uint64_t share = std::max<uint64_t>(kGroup, work.operations / threads);
    const auto operations = static_cast<double>(share * threads);
    const double line_before = NanosOfLine();
    const Switches before = Switches::Now();
    const CommitLock lock_before = CommitLock::Of(*store);
    const double cpu_before = CpuSeconds();
    const Clock::time_point begin = Clock::now();
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        Random random(threads * 100 + i);
        work.part(store, entries, share, &random);
      });
    }
    for (std::thread& thread : running) thread.join();
    const double rate = operations / SecondsSince(begin);
    const double cpu = CpuSeconds() - cpu_before;
    const Switches after = Switches::Now();
    const CommitLock lock = CommitLock::Of(*store);
    const double line = std::max(line_before, NanosOfLine());
    if (threads == 1) of_one = rate;

    const std::string scale = " | logx,logy";
    const auto add = [&](const std::string& panel, const std::string& series, double y) {
      points->push_back({panel, series, "", static_cast<double>(threads), y});
    };
    const std::string title =
        "Operations a second: " + work.name + " | threads | operations" + scale;
    add(title, work.name, rate);
    add(title, work.name + ", ideal", of_one * std::min(threads, processors));
    add("Processor time of an operation | threads | µs" + scale, work.name, cpu * 1e6 / operations);
    add("Time of a cache line between processors | threads | ns | logx", work.name, line);
    add("Waits of an operation | threads | voluntary context switches | logx", work.name,
        (after.waits - before.waits) / operations);
    add("Lost processors of an operation | threads | involuntary context switches | logx",
        work.name, (after.losses - before.losses) / operations);
    if (lock.batches > lock_before.batches) {
      add("Time with the commit lock, of a put | threads | ns | logx", work.name,
          (lock.nanos - lock_before.nanos) / (lock.batches - lock_before.batches));
    }
  }
}

}  // namespace

std::vector<Point> ScalingExperiment(const ExperimentOptions& options) {
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(1e6 * options.scale));
  EngineOptions engine;
  engine.sync = Durability::kNone;
  const auto store = OpenStore(options.directory, engine);
  Key key;
  Value value(kValueSize);
  for (const uint32_t number : Shuffled(entries))
    CheckOk(store->Put(key.Present(number), value.Of(number)));
  CheckOk(store->Flush());
  CheckOk(store->Compact("", ""));
  Random random(1);
  Gets(store.get(), entries, 2 * entries, &random);  // fills the caches

  std::vector<Point> points;
  for (const ScaledWork& work :
       {ScaledWork{"get", 4 * entries, Gets}, ScaledWork{"MultiGet of 16", 4 * entries, MultiGets},
        ScaledWork{"put", entries, Puts(Durability::kNone)},
        ScaledWork{"synced put", entries / 20, Puts(Durability::kAlways)}}) {
    Measure(work, entries, store.get(), &points);
  }
  return points;
}

}  // namespace varve::bench
