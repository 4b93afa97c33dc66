#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/report.h"
#include "benchmark/server/load_generator.h"
#include "client/client.h"

namespace varve::bench {
namespace {

constexpr int kTurns = 3;

// A namespace: its name, which is a line of the picture, and what it is created with. Its quota is
// never reached.
struct Space {
  const char* name;
  std::vector<std::string_view> options;
};

const std::vector<Space>& AllSpaces() {
  static const std::vector<Space>* const spaces =
      new std::vector<Space>{{"none", {}},
                             {"lru", {"MAXBYTES", "100GiB", "EVICT", "lru"}},
                             {"lfu", {"MAXBYTES", "100GiB", "EVICT", "lfu"}}};
  return *spaces;
}

// What one turn of one load came to.
struct Turn {
  double rate = 0;
  double cpu_micros = 0;  // of the server for each request
  double p99_micros = 0;
};

class EvictingServer {
 public:
  EvictingServer(const std::string& directory, uint64_t keys)
      : keys_(keys),
        port_(FreePort()),
        server_({ProgramDirectory() + "/server_main", "--bind=127.0.0.1",
                 fmt::format("--port={}", port_), "--http-port=0", "--dir=" + directory,
                 "--sync=no", "--loglevel=warning"},
                directory + ".log") {
    while (!AnswersPing(port_)) {
      if (!server_.Running()) Fail("there is no server_main that serves: build it first");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (const Space& space : AllSpaces()) {
      Create(space);
      Load fill = LoadOf(space, 64);
      fill.operation = Operation::kSet;
      fill.choice = KeyChoice::kShuffled;
      RunLoad(fill, [] { return 0.0; });
    }
    WaitUntilIdle(kRestSeconds, server_.pid());
  }

  Turn Get(const Space& space, KeyChoice choice, int pipeline) {
    Load load = LoadOf(space, pipeline);
    load.choice = choice;
    const LoadResult result = RunLoad(load, [this] { return server_.CpuSeconds(); });
    const auto requests = static_cast<double>(result.requests);
    return {requests / result.seconds, result.server_cpu_seconds * 1e6 / requests,
            result.p99 * 1e6};
  }

 private:
  Load LoadOf(const Space& space, int pipeline) const {
    Load load;
    load.server = "Varve";
    load.port = port_;
    load.space = space.name;
    load.operation = Operation::kGet;
    load.pipeline = pipeline;
    load.keys = keys_;
    return load;
  }

  void Create(const Space& space) const {
    const auto client = Client::Connect("127.0.0.1", port_);
    CheckOk(client.status());
    std::vector<std::string_view> words = {"NAMESPACE", "CREATE", space.name};
    words.insert(words.end(), space.options.begin(), space.options.end());
    const absl::StatusOr<Reply> reply = (*client)->Call(words);
    CheckOk(reply.status());
    if (reply->text != "OK") Fail("a namespace can not be created: " + reply->text);
  }

  const uint64_t keys_;
  const uint16_t port_;
  Child server_;
};

// The spaces take turns, as the machine is not the same from one second to the next.
void MeasureLoad(KeyChoice choice, int pipeline, EvictingServer* server,
                 std::vector<Point>* points) {
  const std::string category = fmt::format(
      "{}, pipeline {}", choice == KeyChoice::kZipfian ? "zipfian" : "uniform", pipeline);
  std::map<std::string, std::vector<double>> rates, micros, p99s;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const Space& space : AllSpaces()) {
      const Turn measured = server->Get(space, choice, pipeline);
      rates[space.name].push_back(measured.rate);
      micros[space.name].push_back(measured.cpu_micros);
      p99s[space.name].push_back(measured.p99_micros);
    }
  }
  for (const Space& space : AllSpaces()) {
    const auto add = [&](const std::string& what, double y) {
      points->push_back({fmt::format("GETs of a namespace by its EVICT: {} | | {}", what, what),
                         space.name, category, 0, y});
    };
    add("requests a second", Median(rates[space.name]));
    add("CPU µs a request", Median(micros[space.name]));
    add("p99, µs", Median(p99s[space.name]));
  }
}

}  // namespace

std::vector<Point> EvictReadsExperiment(const ExperimentOptions& options) {
  const auto keys = std::max<uint64_t>(1000, static_cast<uint64_t>(1e6 * options.scale));
  const std::string directory = options.directory + "/evict_reads";
  MakeEmptyDirectory(directory);
  EvictingServer server(directory, keys);
  std::vector<Point> points;
  for (const KeyChoice choice : {KeyChoice::kUniform, KeyChoice::kZipfian}) {
    for (const int pipeline : {1, 16, 64}) MeasureLoad(choice, pipeline, &server, &points);
  }
  return points;
}

}  // namespace varve::bench
