#include "tools/repair/repair_plan.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include "db/format/file_names.h"
#include "fmt/format.h"
#include "util/base/checksum.h"
#include "util/base/status.h"

namespace varve {
namespace {

std::string RepairedManifestPath(const std::string& directory) {
  return ManifestPath(directory) + ".repaired";
}
std::string DamagedPath(const std::string& directory) { return directory + "/damaged"; }

absl::Status WriteWhole(FileSystem* file_system, const std::string& directory,
                        const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForWrite(temporary, /*create=*/true));
    VARVE_RETURN_IF_ERROR(file->Write(0, bytes));
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  VARVE_RETURN_IF_ERROR(file_system->Rename(temporary, path));
  return file_system->SyncDirectory(directory);
}

absl::StatusOr<std::string> ReadWhole(FileSystem* file_system, const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string bytes(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, size, bytes.data()));
  bytes.resize(read);
  return bytes;
}

std::string ChecksumLine(std::string_view lines) {
  return fmt::format("checksum {:08x}\n", Checksum(lines, 0));
}

}  // namespace

std::string NameInDamaged(const std::string& name, const std::vector<std::string>& damaged) {
  std::string free = name;
  for (int i = 2; std::find(damaged.begin(), damaged.end(), free) != damaged.end(); ++i) {
    free = fmt::format("{}.{}", name, i);
  }
  return free;
}

absl::Status WriteRepairPlan(FileSystem* file_system, const std::string& directory,
                             const RepairPlan& plan) {
  VARVE_RETURN_IF_ERROR(WriteWhole(file_system, directory, RepairedManifestPath(directory),
                                   EncodeManifest(plan.manifest)));
  std::string lines;
  for (const auto& [name, target] : plan.moves) lines += fmt::format("move {} {}\n", name, target);
  return WriteWhole(file_system, directory, RepairPlanPath(directory), lines + ChecksumLine(lines));
}

absl::StatusOr<RepairPlan> ReadRepairPlan(FileSystem* file_system, const std::string& directory) {
  const std::string path = RepairPlanPath(directory);
  VARVE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(file_system, path));
  const size_t end = text.rfind("checksum ");
  if (end == std::string::npos ||
      text.substr(end) != ChecksumLine(std::string_view(text).substr(0, end))) {
    return Corruption(path, 0,
                      "plan of a repair: wrong checksum; remove the file to begin the repair anew");
  }
  RepairPlan plan;
  for (size_t begin = 0; begin < end;) {
    const size_t line_end = text.find('\n', begin);
    const std::string line = text.substr(begin, line_end - begin);
    const size_t name = line.find(' ') + 1, target = line.rfind(' ') + 1;
    plan.moves.emplace_back(line.substr(name, target - 1 - name), line.substr(target));
    begin = line_end + 1;
  }
  const std::string manifest = RepairedManifestPath(directory);
  VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(file_system, manifest));
  VARVE_ASSIGN_OR_RETURN(plan.manifest, DecodeManifest(bytes, manifest));
  return plan;
}

absl::StatusOr<uint64_t> BeginRebuild(FileSystem* file_system, const std::string& directory,
                                      uint64_t number) {
  const std::string path = RebuildMarkPath(directory);
  const absl::StatusOr<std::string> text = ReadWhole(file_system, path);
  if (absl::IsNotFound(text.status())) {
    const std::string line = fmt::format("from {:020}\n", number);
    VARVE_RETURN_IF_ERROR(WriteWhole(file_system, directory, path, line + ChecksumLine(line)));
    return number;
  }
  VARVE_RETURN_IF_ERROR(text.status());
  constexpr size_t kLine = 26;
  const std::string_view line = std::string_view(*text).substr(0, kLine);
  uint64_t first = 0;
  if (text->substr(line.size()) != ChecksumLine(line) || line.size() != kLine ||
      std::from_chars(line.data() + 5, line.data() + 25, first).ec != std::errc()) {
    return Corruption(path, 0,
                      "mark of a repair: wrong checksum; remove the file to begin the repair anew");
  }
  return first;
}

absl::Status CarryOut(FileSystem* file_system, const std::string& directory,
                      const RepairPlan& plan) {
  const std::string damaged = DamagedPath(directory);
  VARVE_RETURN_IF_ERROR(file_system->CreateDirectory(damaged));
  // Or what is moved into it would be lost with it.
  VARVE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  for (const auto& [name, target] : plan.moves) {
    const std::string to =
        StaysForItsValues(name, target) ? directory + "/" + target : damaged + "/" + target;
    if (file_system->OpenForRead(to).ok()) continue;  // done before an interruption
    // One that a power cut took on its way isn't needed for the store to come: the repair must not
    // end here for ever.
    if (const absl::Status moved = file_system->Rename(directory + "/" + name, to);
        !moved.ok() && !absl::IsNotFound(moved)) {
      return moved;
    }
  }
  VARVE_RETURN_IF_ERROR(file_system->SyncDirectory(damaged));
  VARVE_RETURN_IF_ERROR(WriteManifest(file_system, directory, plan.manifest));
  if (const absl::Status mark = file_system->Remove(RebuildMarkPath(directory));
      !mark.ok() && !absl::IsNotFound(mark)) {
    return mark;
  }
  VARVE_RETURN_IF_ERROR(file_system->Remove(RepairPlanPath(directory)));
  VARVE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  return file_system->Remove(RepairedManifestPath(directory));
}

}  // namespace varve
