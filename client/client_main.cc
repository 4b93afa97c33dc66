// client_main: requests to a running server, for people and scripts, and a look into the files of a store that rests.
// This is the one file of client/ that sees the engine, as it links both: the client's library knows nothing of db/.
#include <cstdio>
#include <string>
#include <string_view>

#include "client/cli/run.h"
#include "db/dump.h"

namespace varve {
namespace {

void PrintLine(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

constexpr OfflineCommand kOfflineCommands[] = {
    {"dump-log", [](const std::string& path) { return DumpLog(PosixFileSystem(), path, PrintLine); }},
    {"dump-segment", [](const std::string& path) { return DumpSegment(PosixFileSystem(), path, PrintLine); }},
};

}  // namespace
}  // namespace varve

int main(int argc, char** argv) { return varve::RunClient(argc, argv, varve::kOfflineCommands); }
