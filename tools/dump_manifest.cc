#include <fmt/format.h>

#include "db/version/manifest.h"
#include "tools/dump.h"
#include "util/base/status.h"

namespace varve {
namespace {

void DumpRun(const std::vector<SegmentInfo>& run, size_t level, size_t number,
             const DumpLine& print) {
  print(fmt::format("level {} run {}: {} segments", level, number, run.size()));
  for (const SegmentInfo& segment : run) {
    print(fmt::format(
        "  segment {}: {} bytes, {} records ({} deletes, {} deletes of ranges), sequences {} to "
        "{}, {} bytes of values in {} files",
        segment.number, segment.file_size, segment.entries, segment.tombstones,
        segment.range_tombstones, segment.smallest_sequence, segment.largest_sequence,
        segment.referenced_bytes(), segment.value_files.size()));
    for (const CompressedBytes& each : segment.compressed) {
      print(fmt::format("    generation {}: values of {} bytes take {}, compression {}",
                        each.generation, each.plain_bytes, each.stored_bytes,
                        FormatCompression(each.compression)));
    }
    if (segment.ingested_at != kNoSequence)
      print(fmt::format("    ingested at version {}", segment.ingested_at));
  }
}

}  // namespace

absl::Status DumpManifest(FileSystem* file_system, const std::string& directory,
                          const DumpLine& print) {
  VARVE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(file_system, directory));
  print(fmt::format("store {:016x}, next file {}, flushed up to sequence {}, clock {} ms{}",
                    manifest.store_id, manifest.next_file_number, manifest.flushed_sequence,
                    manifest.clock_mark, manifest.clean_end ? ", clean end" : ""));
  if (manifest.has_history) {
    print(fmt::format("history {:016x}, times in file {}: {} bytes", manifest.history_id,
                      manifest.times.number, manifest.times.size));
  }
  for (const ManifestNamespace& space : manifest.namespaces)
    print(fmt::format("namespace {}: generation {}", space.id, space.generation));
  for (const NamespaceFork& fork : manifest.forks) {
    print(fmt::format("generation {}: clone of {} as of sequence {}{}", fork.generation,
                      fork.parent, fork.fork_point,
                      fork.expired_by_ms == 0 ? ""
                                              : fmt::format(", without what had expired at {} ms",
                                                            fork.expired_by_ms)));
  }
  for (const LogEnd& end : manifest.log_ends) {
    print(fmt::format("log file {} ends at {} with sequence {}", end.file_number, end.offset,
                      end.last_sequence));
  }
  for (size_t level = 0; level < manifest.levels.size(); ++level) {
    for (size_t run = 0; run < manifest.levels[level].size(); ++run)
      DumpRun(manifest.levels[level][run], level, run, print);
  }
  return absl::OkStatus();
}

}  // namespace varve
