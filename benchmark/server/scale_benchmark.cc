// Measures whether servers over a store on other machines get into each other's way: one server,
// and two side by side, each over a store that does nothing but answer after a delay
// (sleeping_store.h), each with clients of its own. Where neither the store nor the processor is
// the limit, two servers serve twice what one does.
//
//   scale_benchmark --connections=64 --delay_us=5000
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "benchmark/help.h"
#include "benchmark/process.h"
#include "benchmark/server/load_generator.h"
#include "benchmark/server/sleeping_store.h"
#include "server/server.h"

ABSL_FLAG(int, connections, 64, "Connections of each server's clients");
ABSL_FLAG(int, pipeline, 1, "Requests that a connection sends at once");
ABSL_FLAG(int, delay_us, 5000, "Microseconds after which the store answers");
ABSL_FLAG(double, seconds, 3, "Length of each measurement");
ABSL_FLAG(int, turns, 5, "Measurements of each number of servers, in turns; the median counts");
ABSL_FLAG(std::string, dir, "", "Where to put logs (removed at the end)");
ABSL_FLAG(int, serve_port, 0, "Internal: be a server on this port");
ABSL_FLAG(int, load_port, 0, "Internal: load the server on this port");
ABSL_FLAG(bool, set, false, "Internal: that load is SET, else GET");

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;

[[noreturn]] void ServeSleeping(uint16_t port) {
  SleepingStore store(std::chrono::microseconds(absl::GetFlag(FLAGS_delay_us)), kValueSize);
  const absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(&store, {.server = {.port = port, .io_threads = 1}});
  if (!server.ok()) Fail("the server: " + server.status().ToString());
  while (true) ::pause();
}

// Prints the requests a second.
void LoadOne(uint16_t port) {
  Load load;
  load.server = "varve over a store that sleeps";
  load.port = port;
  load.operation = absl::GetFlag(FLAGS_set) ? Operation::kSet : Operation::kGet;
  load.connections = absl::GetFlag(FLAGS_connections);
  load.pipeline = absl::GetFlag(FLAGS_pipeline);
  load.seconds = absl::GetFlag(FLAGS_seconds);
  load.value_size = kValueSize;
  load.check_values = false;
  const LoadResult result = RunLoad(load, [] { return 0.0; });
  fmt::print("{}\n", static_cast<double>(result.requests) / result.seconds);
}

// The last line of the log, a number.
double NumberIn(const std::string& log) {
  std::ifstream file(log);
  std::string line, last;
  while (std::getline(file, line)) last = line;
  double number = 0;
  if (!absl::SimpleAtod(last, &number)) Fail("a load has printed: " + last);
  return number;
}

struct Measured {
  double rate = 0;        // requests a second, of all servers together
  double cpu_micros = 0;  // of the servers, for each request
};

Measured Measure(const std::vector<std::unique_ptr<Child>>& servers,
                 const std::vector<uint16_t>& ports, size_t count, bool set,
                 const std::string& directory) {
  const auto cpu = [&] {
    double seconds = 0;
    for (size_t i = 0; i < count; ++i) seconds += servers[i]->CpuSeconds();
    return seconds;
  };
  const double cpu_before = cpu();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Child>> loads;
  std::vector<std::string> logs;
  for (size_t i = 0; i < count; ++i) {
    logs.push_back(fmt::format("{}/load-{}", directory, i));
    const std::vector<std::string> arguments = {
        ProgramPath(),
        fmt::format("--load_port={}", ports[i]),
        fmt::format("--set={}", set),
        fmt::format("--connections={}", absl::GetFlag(FLAGS_connections)),
        fmt::format("--pipeline={}", absl::GetFlag(FLAGS_pipeline)),
        fmt::format("--seconds={}", absl::GetFlag(FLAGS_seconds))};
    loads.push_back(std::make_unique<Child>(arguments, logs.back()));
  }
  for (const std::unique_ptr<Child>& load : loads) {
    while (load->Running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  Measured measured;
  for (const std::string& log : logs) measured.rate += NumberIn(log);
  measured.cpu_micros = 1e6 * (cpu() - cpu_before) / (measured.rate * taken.count());
  return measured;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Compare(bool set, const std::vector<std::unique_ptr<Child>>& servers,
             const std::vector<uint16_t>& ports, const std::string& directory) {
  std::vector<double> rates[2], micros[2];
  for (int turn = 0; turn < absl::GetFlag(FLAGS_turns); ++turn) {
    for (size_t count = 1; count <= 2; ++count) {
      const Measured measured = Measure(servers, ports, count, set, directory);
      rates[count - 1].push_back(measured.rate);
      micros[count - 1].push_back(measured.cpu_micros);
    }
  }
  const double one = MedianOf(rates[0]), two = MedianOf(rates[1]);
  fmt::print(
      "{}: {:.0f}/s with one server, {:.0f}/s with two: {:.2f} times; {:.1f} and {:.1f} us "
      "of processor time of the server for each request\n",
      set ? "SET" : "GET", one, two, two / one, MedianOf(micros[0]), MedianOf(micros[1]));
}

int Main(int argc, char** argv) {
  HelpIfAsked(argc, argv, "server/scale_benchmark.cc",
              "compares two servers over stores that sleep with one.",
              {{"Rows (all are measured, each by one server and by two side by side):",
                {{"GET", "requests that the store answers after --delay_us"},
                 {"SET", "the same of writes"}}}},
              /*has_google_benchmark=*/false);
  absl::ParseCommandLine(argc, argv);
  if (const int port = absl::GetFlag(FLAGS_serve_port); port > 0)
    ServeSleeping(static_cast<uint16_t>(port));
  if (const int port = absl::GetFlag(FLAGS_load_port); port > 0) {
    LoadOne(static_cast<uint16_t>(port));
    return 0;
  }
  const std::string directory =
      ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "scale_benchmark_data");
  std::vector<std::unique_ptr<Child>> servers;
  std::vector<uint16_t> ports;
  for (int i = 0; i < 2; ++i) {
    ports.push_back(FreePort());
    const std::vector<std::string> arguments = {
        ProgramPath(), fmt::format("--serve_port={}", ports.back()),
        fmt::format("--delay_us={}", absl::GetFlag(FLAGS_delay_us))};
    servers.push_back(
        std::make_unique<Child>(arguments, fmt::format("{}/server-{}", directory, i)));
    while (!AnswersPing(ports.back())) {
      if (!servers.back()->Running()) Fail("a server has ended");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  fmt::print("{} connections for each server, pipelines of {}, a store that answers after {} us\n",
             absl::GetFlag(FLAGS_connections), absl::GetFlag(FLAGS_pipeline),
             absl::GetFlag(FLAGS_delay_us));
  Compare(/*set=*/false, servers, ports, directory);
  Compare(/*set=*/true, servers, ports, directory);
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
