// A small store with everything in it, as files in memory, and what reading it has to say while one
// of the files is damaged.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "db/segment/segment_footer.h"
#include "unit-tests/testing/memory_file_system.h"
#include "varve/options.h"

namespace varve::testing {

inline constexpr std::string_view kStoreDirectory = "data";

struct StoreImage {
  MemoryFileSystem::Files files;
  std::map<std::string, std::string> model;              // what the store holds
  std::map<std::string, std::set<std::string>> history;  // every value that a key ever had
  // Keys that were ever written, and some that never were.
  std::set<std::string> probes;

  std::string Path(std::string_view name) const {
    return std::string(kStoreDirectory) + "/" + std::string(name);
  }
};

EngineOptions ImageOptions(FileSystem* file_system);

// Four segments of several blocks, with tombstones, range tombstones, keys that several segments
// hold and a value larger than a block, an emptied namespace among what came before them, and a log
// with acknowledged writes that no segment holds. `clean`: as closing the store leaves it;
// otherwise as the death of its process, at rest, does.
StoreImage MakeStoreImage(bool clean);
// Large values, written in batches: they stay where the log wrote them, in a file that it has given
// up and in the one in use.
StoreImage MakeDenseStoreImage();
// The first one, not clean, made once.
const StoreImage& Killed();

// Of a path in the store.
inline std::string NameOf(const std::string& path) { return path.substr(path.find('/') + 1); }
// Of a segment that is whole.
SegmentFooter FooterOf(const MemoryFileSystem::Files& files, const std::string& path);

// What a store answered whose file `damaged` was damaged.
struct Reading {
  absl::Status opened;
  size_t failed_keys = 0;  // whose get ended in an error
  bool scanned = false;    // forward and backward, to the end
  std::set<std::string> failed;
};

// Opens a store with the files and reads it in every way. Whatever is wrong fails the test: a value
// that isn't the model's, a key missing without an error, an error that isn't DataLoss or doesn't
// name the damaged file and an offset. `variant` chooses the caches.
Reading ReadDamagedStore(const StoreImage& image, const MemoryFileSystem::Files& files,
                         const std::string& damaged, uint64_t variant);

using Content = std::map<std::string, std::string>;
// All that a store with the files holds. Opening and reading have to succeed, and scans, gets and
// counts to agree.
Content ContentOf(const MemoryFileSystem::Files& files);

// Of bytes that are tried, one in so many is: VARVE_TEST_DAMAGE_STEP, for builds that are slow.
uint64_t DamageStep();

}  // namespace varve::testing
