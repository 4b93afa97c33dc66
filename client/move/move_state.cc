#include "client/move/move_state.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

constexpr std::string_view kTitle = "varve-move 1";

std::string Hex(const std::string& bytes) {
  return bytes.empty() ? "-" : absl::BytesToHexString(bytes);
}

std::string Bytes(const std::string& hex) {
  return hex == "-" ? std::string() : absl::HexStringToBytes(hex);
}

// Reads a line of the file into the state. Returns false where it makes no sense.
bool ReadLine(const std::string& line, MoveState* state) {
  std::istringstream words(line);
  std::string name, hex;
  words >> name;
  if (name == "route") {
    words >> hex;
    state->route = Bytes(hex);
  } else if (name == "feed") {
    words >> state->feed;
  } else if (name == "history") {
    words >> state->history_id;
  } else if (name == "position") {
    words >> state->position;
  } else if (name == "keys") {
    words >> state->keys;
  } else if (name == "open") {
    words >> state->is_open;
  } else if (name == "space") {
    words >> hex;
    state->spaces.insert(Bytes(hex));
  } else if (name == "copy") {
    std::string min, max;
    words >> hex >> min >> max;
    state->copies.push_back({Bytes(hex), {.min = Bytes(min), .max = Bytes(max)}});
  } else {
    return false;
  }
  return !words.fail();
}

}  // namespace

absl::StatusOr<MoveState> MoveState::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(fmt::format("{}: there is no such file", path));
  std::string line;
  MoveState state;
  bool is_whole = std::getline(file, line) && line == kTitle;
  while (is_whole && std::getline(file, line) && line != "end") is_whole = ReadLine(line, &state);
  if (is_whole && line == "end" && !state.feed.empty()) return state;
  return absl::DataLossError(
      fmt::format("{}: is no state of a move; remove it to begin anew", path));
}

absl::Status MoveState::Save(const std::string& path) const {
  std::string text =
      fmt::format("{}\nroute {}\nfeed {}\nhistory {}\nposition {}\nkeys {}\nopen {}\n", kTitle,
                  Hex(route), feed, history_id, position, keys, is_open ? 1 : 0);
  for (const std::string& space : spaces) text += fmt::format("space {}\n", Hex(space));
  for (const PendingCopy& copy : copies) {
    text +=
        fmt::format("copy {} {} {}\n", Hex(copy.space), Hex(copy.bounds.min), Hex(copy.bounds.max));
  }
  text += "end\n";
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
