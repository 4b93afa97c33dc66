// The field's classic experiments on the engine, one function each. docs/performance.md has the
// results.
//
// An experiment returns points of pictures. benchmark/plot puts points of the same panel into one
// picture, each series into one line (over `x`) or one colour of bars (over `category`).
//
// Errors end the process (process.h).
//
// Thread-safety: one thread at a time calls these functions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/latencies.h"
#include "varve/storage_engine.h"

namespace varve::bench {

struct Point {
  std::string panel;     // "title | what x is | what y is | scale", the scale of: logx, logy
  std::string series;    // no slash in it, nor in the category
  std::string category;  // of a bar; empty: a point at `x`
  double x = 0;
  double y = 0;
};

struct ExperimentOptions {
  std::string directory;  // for data; empty
  double scale = 1;
  uint64_t keys = 0;  // of the experiment "large"; 0: its own number, scaled
};

// Measures the time of an acknowledged write by the size of groups, and for delayed groups.
std::vector<Point> GroupFsyncExperiment(const ExperimentOptions& options);
// Measures gets that hit and miss, in few large or many small segments, with tables and blocks in
// memory or not; and gets of one thread with and without a lock around them.
std::vector<Point> FilterExperiment(const ExperimentOptions& options);
// Measures reads and writes, in order and at random, of 100 and 1000 bytes, as a library and over
// TCP, with 1000 offset tables.
std::vector<Point> ClassicExperiment(const ExperimentOptions& options);
// Measures the rate and the cost of gets, MultiGets, puts and synced puts with 1, 2, 4 .. threads.
std::vector<Point> ScalingExperiment(const ExperimentOptions& options);
// Measures clones of the past, and the comparison of two versions, for 1000 and 10 million keys.
std::vector<Point> PastClonesExperiment(const ExperimentOptions& options);
// Measures how fast an archive of changes of 100 and of 1000 bytes is restored to its last version.
std::vector<Point> ArchiveRestoreExperiment(const ExperimentOptions& options);
// Measures the time of a merge of six runs by 1, 2, 4 .. threads.
std::vector<Point> MergePartsExperiment(const ExperimentOptions& options);
// Measures a store of 100 million keys: the time to fill it, and its bytes on disk; and in a memory
// cgroup that has room for its tables alone, the time to open it and to get keys at random, at rest
// and while merges run, the reads of the disk of a get, and its bytes in memory.
std::vector<Point> LargeExperiment(const ExperimentOptions& options);
// Does the part that LargeExperiment() tells, in the process that it starts for it, and prints its
// figures.
void LargePart(const std::string& what);
// Measures gets of zipfian and other keys with data 4 times the memory of a cgroup, mapped and not.
std::vector<Point> ZipfBeyondExperiment(const ExperimentOptions& options);
// Does the part that ZipfBeyondExperiment() tells, in the process that it starts for it, and prints
// its figures.
void ZipfBeyondPart(const std::string& what);
// Measures what a GET costs a server in a namespace with EVICT, beside one without.
std::vector<Point> EvictReadsExperiment(const ExperimentOptions& options);
// Measures the resident memory while 4 KiB values are written and read, and the memory of the index
// of 10 million keys.
std::vector<Point> MemoryExperiment(const ExperimentOptions& options);
// Measures what compression costs a get, a scan, a fill and a merge of JSON, and what it saves on
// disk of JSON, of values that are kept apart and of random bytes.
std::vector<Point> CompressionExperiment(const ExperimentOptions& options);

// Ends the process unless `status` is OK.
void CheckOk(const absl::Status& status);
std::unique_ptr<StorageEngine> OpenStore(const std::string& directory,
                                         const EngineOptions& options);
uint64_t Statistic(const Store& store, const std::string& name);
// Returns the processor time of the process so far.
double CpuSeconds();
double SecondsSince(Clock::time_point begin);

}  // namespace varve::bench
