// The command line of client_main, as plain values, and the function that parses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "client/client_options.h"
#include "client/console/output.h"

namespace varve {

// Exit codes, which scripts rely on.
inline constexpr int kDone = 0;
// get: the key is missing; delete: none of the keys was there.
inline constexpr int kMissing = 1;
// Lines from standard input: not all of them were executed without an error.
inline constexpr int kErrorReply = 1;
inline constexpr int kFailed =
    // A wrong command line, no connection, an error of the server, records that could not be
    // imported.
    2;

struct BenchOptions {
  int64_t connections = 50;
  int64_t pipeline = 1;
  int64_t value_size = 100;
  int64_t keyspace = 100000;
  int64_t seconds = 2;  // each test
};

struct TreeOptions {
  std::string delimiter = "/";
  int64_t depth = 0;  // 0: as deep as the server goes
  bool sizes = false;
  bool ascii = false;
};

// The options of move.
struct MoveFlags {
  bool one_space = false;              // a database or namespace was named
  std::string into;                    // the namespace of the target; empty: of the same name
  std::vector<std::string> groupings;  // NAME=together or NAME=delimiter
  std::string state;                   // a file; empty: an interrupted move begins anew
  bool until_caught_up = false;
  bool finish = false;
  bool verify = false;
  bool replace = false;
  bool skip_options = false;
  bool skip_refused = false;
};

// The options of backup, restore and archive.
struct CopyOptions {
  bool incremental = false;
  int64_t bytes_per_second = 0;  // also of move; 0: as fast as it goes
  // A backup takes a rule such as daily=7,weekly=4, an archive a time such as 7d. Empty: all stays.
  std::string keep;
  std::string backup;       // an id; empty: the newest that fits
  int64_t at_version = 0;   // 0: the backup's
  int64_t at_time_ms = -1;  // since the epoch; negative: the backup's
  bool dry_run = false;
  int64_t interval_ms = 1000;  // of archive
  bool once = false;           // archive: ends once it has everything
  int64_t base_every_ms = 0;   // archive: takes another base so often; 0: where one is needed
  int64_t feed_bytes = int64_t{1} << 30;  // archive, move: that the server keeps for it at most
  std::string exec;  // archive: a command that takes each file; empty: they stay in DEST
};

struct CommandLine {
  ClientOptions connection;
  // The protocol that was asked for; 0: the command chooses.
  int protocol = 0;
  bool last_from_input = false;  // standard input is one more word, the last one
  RangeQuery query;
  OutputStyle style = OutputStyle::kAuto;
  std::string format;  // of import and export; empty: by the file's name or content
  std::string since;   // of changes: a version; empty: the oldest that is retained
  std::string prefix;  // of changes and move: of keys
  bool follow = false;
  bool resume = false;
  bool force = false;
  bool atomic = false;         // import: everything in one step
  bool sort = false;           // import: the file's keys are in no order
  bool replaces = false;       // import: --replace-prefix was given
  std::string replace_prefix;  // import: what begins so goes in the same step
  bool progress = false;       // also where standard error is no terminal
  int64_t http_port = 0;       // of the server, for bundle; 0: as its settings say
  BenchOptions bench;
  CopyOptions copies;
  MoveFlags move;
  TreeOptions tree;
  bool help = false;
  bool version = false;
  std::vector<std::string> words;  // the command and its arguments
};

// Reads `--name=value` or `--name value`, and, in front of the command, the short options of
// redis-cli (`-h host`). What the environment says (VARVE_URL, VARVE_PASSWORD, REDISCLI_AUTH) holds
// where the command line has nothing else. Nothing, after saying why on standard error, when the
// command line is wrong.
std::optional<CommandLine> ParseCommandLine(int argc, char** argv);

// The text that --help prints behind the name of the program.
extern const std::string_view kUsage;

// Prints "<program>: <message>" to standard error; kFailed.
int Fail(const absl::Status& status);

}  // namespace varve
