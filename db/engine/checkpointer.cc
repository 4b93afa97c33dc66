#include "db/engine/checkpointer.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "db/format/file_names.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

// A flush between the steps 2 and 3 may point into the log again.
constexpr int kMostTries = 16;
constexpr std::string_view kManifestName = "MANIFEST";

// "a/b/000007.seg" -> "000007.seg".
std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

absl::StatusOr<Checkpoint> Checkpointer::Create(const std::string& directory) const {
  if (pipeline_.IsClosed()) return absl::UnavailableError("the store is closed");
  VARVE_RETURN_IF_ERROR(parts_.file_system->CreateDirectory(directory));
  VARVE_RETURN_IF_ERROR(CheckEmpty(directory));
  absl::StatusOr<Checkpoint> made = absl::AbortedError("");
  for (int i = 0; i < kMostTries && absl::IsAborted(made.status()); ++i) {
    VARVE_RETURN_IF_ERROR(LeaveLogAndFlush());
    made = Fill(directory);
  }
  if (absl::IsAborted(made.status())) {
    return absl::UnavailableError(
        "the checkpoint could not be made beside so many writes of large values: try again");
  }
  return made;
}

absl::Status Checkpointer::CheckEmpty(const std::string& directory) const {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, parts_.file_system->List(directory));
  if (names.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} is not empty: it holds {}; remove it, or choose another directory", directory,
                  names.front()));
}

absl::Status Checkpointer::LeaveLogAndFlush() const {
  // The mark dates the checkpoint. A follower's versions are its primary's, so it makes none.
  if (!parts_.log->follows()) {
    WriteBatch mark;
    mark.MarkClock(parts_.clock->NowMillis());
    VARVE_RETURN_IF_ERROR(
        write_({.sync = Durability::kAlways, .override_sync = true}, &mark).status());
  }
  Log& log = *parts_.log->get();
  const absl::Cleanup recycle = [&log] { log.RecycleFiles(); };
  VARVE_RETURN_IF_ERROR(log.PrepareToLeaveFile());
  return pipeline_.FlushAll(/*leaves_log_file=*/true);
}

absl::StatusOr<Checkpoint> Checkpointer::Fill(const std::string& directory) const {
  absl::Cleanup remove = [&] { RemoveAll(directory); };
  Checkpoint made;
  Manifest own;
  VARVE_RETURN_IF_ERROR(
      version_set_.Visit([&](const Manifest& manifest, const Version& version) -> absl::Status {
        VARVE_RETURN_IF_ERROR(LinkFiles(manifest, version, directory, &made));
        if (manifest.times.number != 0)
          VARVE_RETURN_IF_ERROR(CopyTimes(manifest.times, directory, &made));
        own = manifest;
        return absl::OkStatus();
      }));
  made.version = own.flushed_sequence;
  made.store_id = own.store_id;
  made.history_id = own.history_id;
  made.instant_ms = version_set_.times().InstantOf(made.version).value_or(0);
  VARVE_RETURN_IF_ERROR(WriteOwnManifest(std::move(own), directory, &made));
  std::move(remove).Cancel();
  return made;
}

absl::Status Checkpointer::LinkFiles(const Manifest& manifest, const Version& version,
                                     const std::string& directory, Checkpoint* made) const {
  FileSystem& files = *parts_.file_system;
  for (const Version::ValueFileUse& use : version.value_files()) {
    if (use.file->is_of_log()) return absl::AbortedError("a segment points into the log");
    const std::string path = ValueFilePath(parts_.directory, use.file->number());
    const std::string name = NameIn(path);
    VARVE_RETURN_IF_ERROR(files.Link(path, fmt::format("{}/{}", directory, name)));
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.OpenForRead(path));
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    made->files.push_back({name, size});
  }
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        const std::string path = SegmentPath(parts_.directory, segment.number);
        const std::string name = NameIn(path);
        VARVE_RETURN_IF_ERROR(files.Link(path, fmt::format("{}/{}", directory, name)));
        made->files.push_back({name, segment.file_size});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checkpointer::CopyTimes(const TimeFilePlace& place, const std::string& directory,
                                     Checkpoint* made) const {
  const std::string from = TimeFilePath(parts_.directory, place.number);
  const std::string name = NameIn(from);
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> source, parts_.file_system->OpenForRead(from));
  std::string bytes(place.size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, source->Read(0, bytes.size(), bytes.data()));
  if (read != bytes.size()) return Corruption(from, read, "the time file ends too early");
  VARVE_ASSIGN_OR_RETURN(
      const std::unique_ptr<File> copy,
      parts_.file_system->OpenForWrite(fmt::format("{}/{}", directory, name), /*create=*/true));
  VARVE_RETURN_IF_ERROR(copy->Write(0, bytes));
  VARVE_RETURN_IF_ERROR(copy->Sync());
  made->files.push_back({name, place.size});
  return absl::OkStatus();
}

absl::Status Checkpointer::WriteOwnManifest(Manifest manifest, const std::string& directory,
                                            Checkpoint* made) const {
  manifest.log_ends.clear();
  manifest.clean_end = false;
  manifest.feeds.clear();
  manifest.changes = {};
  VARVE_RETURN_IF_ERROR(WriteManifest(parts_.file_system, directory, manifest));
  made->files.push_back({std::string(kManifestName), EncodeManifest(manifest).size()});
  return absl::OkStatus();
}

void Checkpointer::RemoveAll(const std::string& directory) const {
  const absl::StatusOr<std::vector<std::string>> names = parts_.file_system->List(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names)
    RemoveFile(parts_.file_system, fmt::format("{}/{}", directory, name));
}

}  // namespace varve
