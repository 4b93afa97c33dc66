#include "client/transfer/import_state.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "fmt/format.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve {

std::string ImportState::PathFor(const std::string& input) {
  std::string path = input;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path + ".import-state";
}

absl::StatusOr<ImportState> ImportState::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return absl::NotFoundError(
        fmt::format("{}: there is no such file, so nothing to resume", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ImportState state;
  int at_risk = 0;
  const int read = std::sscanf(text.c_str(),
                               "varve-import 1 size %" SCNu64 " offset %" SCNu64 " line %" SCNu64
                               " keys %" SCNu64 " at-risk %d",
                               &state.size, &state.offset, &state.line, &state.keys, &at_risk);
  if (read != 5)
    return absl::DataLossError(
        fmt::format("{}: is no state of an import; remove it to begin anew", path));
  state.at_risk = at_risk != 0;
  return state;
}

absl::Status ImportState::Save(const std::string& path) const {
  const std::string text =
      fmt::format("varve-import 1\nsize {}\noffset {}\nline {}\nkeys {}\nat-risk {}\n", size,
                  offset, line, keys, at_risk ? 1 : 0);
  const std::string temporary = path + ".tmp";
  {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           PosixFileSystem()->OpenForWrite(temporary, true));
    VARVE_RETURN_IF_ERROR(file->Write(0, text));
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  return PosixFileSystem()->Rename(temporary, path);
}

}  // namespace varve
