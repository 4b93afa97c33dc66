// Engine: values that are written once. Where a flush leaves them, and what becomes of the files that hold them.
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "db/engine.h"
#include "db/file_names.h"
#include "db/large_operation.h"
#include "db/log_format.h"
#include "db/value_collection.h"
#include "spdlog/spdlog.h"
#include "util/memory_guard.h"
#include "util/status.h"

namespace varve {
namespace {

// Values stay in the log where at least this part of it is values: else what lies around them is garbage from the start.
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
  placement.separation_size = [own_sizes = std::move(own_sizes), usual = options_.value_separation_size](
                                  NamespaceGeneration generation) -> uint64_t {
    const auto own = own_sizes.find(generation);
    return own == own_sizes.end() ? usual : own->second;
  };
  const WriteBuffer& buffer = *full.buffer;
  if (buffer.logged_large_bytes() * kDenseDenominator >= full.log_bytes * kDenseNumerator) {
    placement.log_blocks = log_->LargeBlocks(buffer.first_sequence(), buffer.last_sequence());
  }
  return NewFlushPlacer(std::move(placement), {.file_system = file_system_,
                                               .directory = directory_,
                                               .next_file_number = [this] { return NewFileNumber(); },
                                               .registry = &caches_.values});
}

absl::Status Engine::OpenValueFiles() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  const std::unordered_set<std::string> present(names.begin(), names.end());
  for (const Version::ValueFileUse& use : PresentVersion()->value_files()) {
    const std::string path = ValueFilePath(directory_, use.file->number());
    if (present.contains(path.substr(directory_.size() + 1))) {
      use.file->TakeOver(0);
    } else if (!present.contains(LogFileName(use.file->number()))) {
      use.file->TakeOver(0);
      use.file->Damaged(0, "value file: missing, with the values that lay in it").IgnoreError();  // is logged
    }
  }
  return absl::OkStatus();
}

absl::Status Engine::KeepAsValueFile(ValueFile* file, uint64_t end) {
  const std::string path = ValueFilePath(directory_, file->number());
  VARVE_RETURN_IF_ERROR(file_system_->Rename(directory_ + "/" + LogFileName(file->number()), path));
  // It is no log any more once its name says so: only then may it be shortened.
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(directory_));
  if (end == 0) {
    file->TakeOver(0);
    return absl::OkStatus();
  }
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened, file_system_->OpenForWrite(path, /*create=*/false));
  file->TakeOver(end);
  return opened->Truncate(end);
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
  for (const auto& [file, end] : kept) {
    // What fails here is done by the next open; until then the file stays as it is.
    const absl::Status named = GuardMemory("keeping a log file for its values",
                                           [&] { return KeepAsValueFile(file.get(), LogPageAlign(end.offset)); });
    if (!named.ok()) TryWithMemory([&] { spdlog::warn("{}", named.ToString()); });
  }
}

void Engine::FollowValueFiles(const Version& before, const Version& after) {
  for (const Version::ValueFileUse& use : before.value_files()) {
    if (after.FindValueFile(use.file->number()) == nullptr) use.file->MarkObsolete(&remover_);
  }
  for (const Version::ValueFileUse& use : after.value_files()) use.file->MarkObsolete(nullptr);
}

}  // namespace varve
