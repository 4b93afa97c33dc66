#include <fmt/format.h>

#include <algorithm>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr uint64_t kFewKeys = 1'000;
constexpr uint64_t kManyKeys = 10'000'000;
constexpr size_t kValueSize = 100;
constexpr size_t kPutsInBatch = 1'000;
constexpr int kClones = 101;

EngineOptions Keeping() {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.history.time_ms = 86'400'000;
  return options;
}

// Returns the version that all entries have been written with.
SequenceNumber Fill(StorageEngine* store, uint64_t entries) {
  Key key;
  Value value(kValueSize);
  WriteBatch batch;
  SequenceNumber last = kNoSequence;
  for (uint64_t i = 0; i < entries; ++i) {
    batch.Put(key.Present(i), value.Of(i));
    if (batch.size() < kPutsInBatch && i + 1 < entries) continue;
    const absl::StatusOr<CommitResult> written = store->Write({}, &batch);
    CheckOk(written.status());
    last = written->sequence;
  }
  CheckOk(store->Flush());
  CheckOk(store->Compact("", ""));
  return last;
}

// Clones the namespace as of the version, again and again. Returns the median in microseconds.
double MedianOfClones(StorageEngine* store, SequenceNumber version) {
  std::vector<double> micros;
  WriteBatch batch;
  for (int i = 0; i < kClones; ++i) {
    const Clock::time_point begin = Clock::now();
    batch.CloneNamespaceAt(kDefaultNamespace, version, {.id = 1});
    CheckOk(store->Write({}, &batch).status());
    micros.push_back(SecondsSince(begin) * 1e6);
    batch.DropNamespace(1);
    CheckOk(store->Write({}, &batch).status());
  }
  return Median(micros);
}

// Writes into a tenth of a thousand keys and asks in what the present differs from the version.
double MillisOfDifference(StorageEngine* store, SequenceNumber version) {
  constexpr uint64_t kChanged = 100;
  Key key;
  Value value(kValueSize + 1);
  for (uint64_t i = 0; i < kChanged; ++i) CheckOk(store->Put(key.Present(10 * i), value.Of(i)));
  const auto past = store->SnapshotAt(kDefaultNamespace, version);
  CheckOk(past.status());
  const Clock::time_point begin = Clock::now();
  const auto differences = store->NewDifferenceIterator(
      {*past, kDefaultNamespace}, {store->GetSnapshot(), kDefaultNamespace}, "", "");
  CheckOk(differences.status());
  uint64_t found = 0;
  while ((*differences)->Next()) ++found;
  CheckOk((*differences)->status());
  if (found != kChanged) Fail("the comparison of two versions gave a wrong answer");
  return SecondsSince(begin) * 1e3;
}

}  // namespace

std::vector<Point> PastClonesExperiment(const ExperimentOptions& options) {
  std::vector<Point> points;
  const auto many =
      std::max(kFewKeys, static_cast<uint64_t>(static_cast<double>(kManyKeys) * options.scale));
  for (const uint64_t entries : {kFewKeys, many}) {
    const std::string category = fmt::format("{} keys", entries);
    const auto store = OpenStore(fmt::format("{}/{}", options.directory, entries), Keeping());
    const SequenceNumber version = Fill(store.get(), entries);
    CheckOk(store->Put("later", "write"));
    CheckOk(store->Delete("later"));
    points.push_back({"A clone of the past | keys of the namespace | µs", "clone", category, 0,
                      MedianOfClones(store.get(), version)});
    points.push_back({"The keys that differ, of which 100 do | keys of the namespace | ms",
                      "difference", category, 0, MillisOfDifference(store.get(), version)});
    CheckOk(store->Close());
  }
  return points;
}

}  // namespace varve::bench
