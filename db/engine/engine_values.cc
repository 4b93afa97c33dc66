// Engine: values that are written once. Where a flush leaves them, and what becomes of the files
// that hold them.
#include <unordered_map>
#include <utility>

#include "db/engine/engine.h"
#include "db/format/log_format.h"
#include "spdlog/spdlog.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Values stay in the log where at least this part of it is values: else what lies around them is
// garbage from the start.
constexpr uint64_t kDenseNumerator = 2, kDenseDenominator = 3;

}  // namespace

std::unique_ptr<ValuePlacer> Engine::NewPlacer(const FullBuffer& full) {
  FlushPlacement placement;
  // Of generations whose namespace asks for something of its own.
  std::unordered_map<NamespaceGeneration, uint64_t> own_sizes;
  for (const ManifestNamespace& entry : full.namespaces.entries()) {
    const NamespaceDescription* const space = full.namespaces.Description(entry.id);
    if (space != nullptr && space->options.value_separation_size != 0) {
      own_sizes[entry.generation] = space->options.value_separation_size;
    }
  }
  placement.separation_size =
      [own_sizes = std::move(own_sizes),
       usual = options_.value_separation_size](NamespaceGeneration generation) -> uint64_t {
    const auto own = own_sizes.find(generation);
    return own == own_sizes.end() ? usual : own->second;
  };
  const WriteBuffer& buffer = *full.buffer;
  if (buffer.logged_large_bytes() * kDenseDenominator >= full.log_bytes * kDenseNumerator) {
    placement.log_blocks = log_->LargeBlocks(buffer.first_sequence(), buffer.last_sequence());
  }
  return NewFlushPlacer(std::move(placement),
                        {.file_system = file_system_,
                         .directory = directory_,
                         .next_file_number = [this] { return NewFileNumber(); },
                         .registry = &caches_.values});
}

void Engine::RetireLog(SequenceNumber flushed) {
  std::vector<std::pair<std::shared_ptr<ValueFile>, LogEnd>> kept;
  // Where there is no memory the files are left to the next time.
  TryWithMemory([&] {
    kept.reserve(log_->Files().size());
    log_->Retire(flushed, [&](const LogEnd& end) {
      std::shared_ptr<ValueFile> file = caches_.values.Find(end.file_number);
      if (file == nullptr) return false;
      kept.emplace_back(std::move(file), end);
      return true;
    });
  });
  for (const auto& each : kept) {
    const std::shared_ptr<ValueFile>& file = each.first;
    const LogEnd& end = each.second;
    // What fails here is done by the next open; until then the file stays as it is.
    const absl::Status named = GuardMemory("keeping a log file for its values", [&] {
      return file->LeaveLog(LogPageAlign(end.offset));
    });
    if (!named.ok()) TryWithMemory([&] { spdlog::warn("{}", named.ToString()); });
  }
}

}  // namespace varve
