#include "unit-tests/layering/rooms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace varve {
namespace {

using Folders = std::set<std::string, std::less<>>;

// Every room, from the lowest to the highest.
constexpr auto kRooms = std::to_array<std::string_view>({
    "include/varve",
    "type",
    "util/base",
    "util/os",
    "util/redis_format",
    "util/resp",
    "structure",
    "db/format",
    "db/compression",
    "db/values",
    "db/log",
    "db/write_buffer",
    "db/segment",
    "db/namespaces",
    "db/history",
    "db/changes",
    "db/version",
    "db/iterators",
    "db/difference",
    "db/compaction",
    "db/ingest",
    "db/counting",
    "db/expiry",
    "db/commit",
    "db/engine",
    "db/transaction",
    "db/hbase_rpc",
    "db/hbase",
    "tools",
    "tools/repair",
    "tools/backup",
    "tools/archive",
    "client",
    "server/config",
    "server/requests",
    "server/access",
    "server/tracking",
    "server/clients",
    "server/statistics",
    "server/tls",
    "server/ingests",
    "server/backups",
    "server/replication",
    "server/eviction",
    "server/execution",
    "server/remote",
    "server/scans",
    "server/past",
    "server/feed",
    "server/status",
    "server/commands",
    "server/user_commands",
    "server/history_commands",
    "server/copy_commands",
    "server/replica_commands",
    "server/http",
    "server/net",
    "server/following",
    "server",
    "client/console",
    "client/redis_files",
    "client/transfer",
    "client/bundle",
    "client/copies",
    "client/move",
    "client/cli",
    "client/program",
    "benchmark",
    "benchmark/engine",
    "benchmark/server",
});

constexpr std::string_view kTests = "unit-tests";
constexpr std::string_view kTestHelpers = "unit-tests/testing";
constexpr std::string_view kPublic = "include";
constexpr std::string_view kProgramRoom = "client/program";

// The top folders that each top folder may include, itself among them.
const std::map<std::string, Folders, std::less<>>& Tops() {
  static const auto* const tops = new std::map<std::string, Folders, std::less<>>{
      {"include", {"include"}},
      {"type", {"include", "type"}},
      {"util", {"include", "type", "util"}},
      {"structure", {"include", "type", "util", "structure"}},
      {"db", {"include", "type", "util", "structure", "db"}},
      {"tools", {"include", "type", "util", "structure", "db", "tools"}},
      {"server", {"include", "type", "util", "structure", "db", "client", "server"}},
      {"client", {"include", "type", "util", "client"}},
      {"benchmark",
       {"include", "type", "util", "structure", "db", "tools", "server", "client", "benchmark"}},
      {"examples", {"include", "type", "client"}},
  };
  return *tops;
}

// The top folders that tests may include besides what the folder of their name may: those that
// mirror a room, and those of the whole system, which mirror none.
const std::map<std::string, Folders, std::less<>>& TestTops() {
  static const auto* const tops = new std::map<std::string, Folders, std::less<>>{
      {"db", {"tools"}},
      {"server", {"client"}},
      {"store", {"include", "db"}},
      {"testing", {"include", "type", "util", "structure", "db"}},
      {"layering", {"util"}},
      {"crash", {"include", "type", "util", "structure", "db", "tools"}},
      {"corruption", {"include", "type", "util", "structure", "db", "tools"}},
      {"differential", {"include", "type", "util", "db", "server"}},
      {"fuzz", {"include", "type", "util", "structure", "db", "tools", "server", "client"}},
      {"memory", {"include", "type", "util", "structure", "db", "server", "client"}},
      {"prove", {"include", "type", "util", "client"}},
  };
  return *tops;
}

std::string_view TopOf(std::string_view folder) { return folder.substr(0, folder.find('/')); }

// Returns the height of a room, and nothing for a folder that is none.
std::optional<size_t> HeightOf(std::string_view folder) {
  const auto* const found = std::find(kRooms.begin(), kRooms.end(), folder);
  if (found == kRooms.end()) return std::nullopt;
  return static_cast<size_t>(found - kRooms.begin());
}

// Returns whether `to` is not above `from`. A folder that is no room, such as unit-tests/crash, is
// above every room.
bool IsNotAbove(std::string_view from, std::string_view to) {
  const std::optional<size_t> height = HeightOf(from);
  if (!height.has_value()) return true;
  const std::optional<size_t> target = HeightOf(to);
  return target.has_value() && *target <= *height;
}

bool Holds(const std::map<std::string, Folders, std::less<>>& tops, std::string_view top,
           std::string_view folder) {
  const auto found = tops.find(top);
  return found != tops.end() && found->second.contains(TopOf(folder));
}

bool CodeMayInclude(std::string_view from, std::string_view to) {
  if (from == kProgramRoom) return Holds(Tops(), "tools", to) || TopOf(to) == "client";
  return from == to || (Holds(Tops(), TopOf(from), to) && IsNotAbove(from, to));
}

// Returns whether a test of `room` may include production code in `to`.
bool TestMayInclude(std::string_view room, std::string_view to) {
  if (TopOf(to) == kPublic) return true;
  if (Holds(TestTops(), TopOf(room), to)) return true;
  // The tests of a whole top folder lie in the folder itself, and stand above all of its rooms.
  const bool whole = room.find('/') == std::string_view::npos;
  return room == to || (Holds(Tops(), TopOf(room), to) && (whole || IsNotAbove(room, to)));
}

// Returns whether a test of `room` may include what the tests of the room `to` stand on.
bool TestMayIncludeTest(std::string_view room, std::string_view to) {
  if (to == room || to == kTestHelpers.substr(kTests.size() + 1) || to == TopOf(room)) return true;
  return TopOf(to) == TopOf(room) && IsNotAbove(room, to);
}

std::string_view WithoutTests(std::string_view folder) {
  folder.remove_prefix(std::min(folder.size(), kTests.size() + 1));
  return folder;
}

}  // namespace

std::string_view FolderOf(std::string_view path) {
  const size_t end = path.rfind('/');
  return end == std::string_view::npos ? "" : path.substr(0, end);
}

std::string IncludedPath(std::string_view quoted) {
  if (TopOf(quoted) == "varve") return fmt::format("{}/{}", kPublic, quoted);
  return std::string(quoted);
}

bool IsOurs(std::string_view folder) {
  return TopOf(folder) == kTests || Tops().contains(TopOf(folder));
}

bool IsRoom(std::string_view folder) {
  static const Folders others = {"benchmark", "cmake", "examples", "unit-tests"};
  return others.contains(TopOf(folder)) || HeightOf(folder).has_value();
}

bool MayInclude(std::string_view from, std::string_view to) {
  const bool of_a_test = TopOf(to) == kTests;
  if (TopOf(from) != kTests) return !of_a_test && CodeMayInclude(from, to);
  const std::string_view room = WithoutTests(from);
  return of_a_test ? TestMayIncludeTest(room, WithoutTests(to)) : TestMayInclude(room, to);
}

}  // namespace varve
