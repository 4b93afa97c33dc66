// Sends the same random commands to a server_main and a redis-server and compares their replies
// byte by byte. The commands come in rounds that begin with empty servers; in a round they go in
// pipelined batches, alternately in RESP2 and RESP3. After each round the data itself is compared.
// Several connections take turns, each with transactions of its own. A difference is reported with
// the shortest list of commands found that shows it again.
//
// A grouped run keeps Varve's connections in a namespace whose keys are one group, as a store that is
// atomic within groups refuses too much elsewhere; the commands that cannot work so are left out.
//
// Thread-safety: a run belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "type/reply.h"
#include "unit-tests/differential/command_generator.h"
#include "unit-tests/differential/differences.h"
#include "unit-tests/differential/peer.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::differential {

struct RunOptions {
  std::string redis_server = "redis-server";  // a program in PATH, or a path
  std::vector<std::string> redis_arguments;
  std::string varve_server;
  std::vector<std::string> varve_arguments;  // none: those of a store with small write buffers
  bool grouped = false;
  uint64_t commands = 20'000;
  uint64_t seed = 1;           // of the first round, the next ones have the numbers that follow
  size_t max_differences = 5;  // the run ends when so many were found
  int protocol = 0;            // 2 or 3; 0: alternately
};

struct RunResult {
  uint64_t commands = 0;
  uint64_t rounds = 0;
  std::map<std::string, uint64_t> by_command;   // how many of each were compared
  std::map<std::string, uint64_t> explained;    // how often each reason explained a difference
  std::map<std::string, std::string> left_out;  // commands, with the reason
  std::vector<std::string> differences;         // that nothing explains, in words
};

class DifferentialRun {
 public:
  // Starts both servers.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<DifferentialRun>> Start(RunOptions options);

  // Fails when a server can't be spoken to any more.
  [[nodiscard]] absl::StatusOr<RunResult> Run();

  // Names of the commands that Redis has (in COMMAND LIST), those of its containers' subcommands
  // among them.
  [[nodiscard]] absl::StatusOr<std::set<std::string>> RedisCommands() {
    return CommandNames(redis_[0].get());
  }

  // Both servers' answers to one request.
  struct Answers {
    Reply redis;
    Reply varve;
  };
  [[nodiscard]] absl::StatusOr<Answers> Ask(const CommandLine& line);

 private:
  static constexpr size_t kConnections = 3;  // to each server

  struct Replies {
    std::vector<std::string> redis;
    std::vector<std::string> varve;
  };
  // A request and the connection that it goes over.
  struct Step {
    size_t connection = 0;
    CommandLine line;
  };
  struct Queues {
    // Holds what was queued on each connection since its MULTI, if there was one.
    std::array<std::optional<std::vector<CommandLine>>, kConnections> of;
    bool fails_fields = false;  // a BITFIELD with OVERFLOW FAIL was among the requests
  };

  explicit DifferentialRun(RunOptions options) : options_(std::move(options)) {}

  absl::Status StartServers();
  // Makes the namespace of a grouped run, and leaves out what does not work in it.
  absl::Status PrepareGroup();
  static absl::StatusOr<std::set<std::string>> CommandNames(Peer* peer);
  absl::StatusOr<Replies> Exchange(absl::Span<const CommandLine> lines, size_t connection = 0);
  // Returns what Varve is sent in the place of what Redis is sent.
  std::vector<CommandLine> ForVarve(absl::Span<const CommandLine> lines) const;
  // Neighbours that go over the same connection together.
  absl::StatusOr<Replies> Exchange(absl::Span<const Step> steps);
  absl::Status Begin(int protocol);
  // How many flushes Varve has made, in its words; nothing where its store makes none.
  absl::StatusOr<std::string> Flushes();
  absl::Status Round(uint64_t seed, int protocol, RunResult* result);
  // Compares the replies to one request, or to what EXEC executed, one by one.
  enum class Verdict { kSame, kExplained, kOver, kDiffers };
  Verdict CompareOne(const Step& step, const std::string& redis, const std::string& varve,
                     Queues* queues, RunResult* result);
  Verdict CompareReplies(const CommandLine& line, const Difference* difference,
                         const std::string& redis, const std::string& varve, RunResult* result);
  // Compares the replies from `first` on. True: the round is over.
  bool Compare(const Replies& replies, size_t first, RunResult* result);
  absl::Status CompareData();
  absl::Status Report(uint64_t seed, int protocol, RunResult* result);
  // Whether the replies to the last of `lines`, sent to empty servers in one go, differ.
  absl::StatusOr<bool> Differs(const std::vector<Step>& steps, int protocol);

  const RunOptions options_;
  testing::TempDir directory_;
  RedisServer redis_server_;
  std::unique_ptr<testing::ServerProcess> varve_server_;
  std::array<std::unique_ptr<Peer>, kConnections> redis_;
  std::array<std::unique_ptr<Peer>, kConnections> varve_;
  std::set<std::string> known_;
  std::vector<Step> history_;  // of this round
  Queues queues_;
  std::string flushes_before_;  // the round
  // The replies to the last command of history_ do, and nothing explains it.
  bool differs_ = false;
  std::string redis_reply_;
  std::string varve_reply_;
};

}  // namespace varve::differential
