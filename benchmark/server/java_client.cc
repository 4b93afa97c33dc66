#include "benchmark/server/java_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/server/load_connection.h"
#include "benchmark/server/load_generator.h"

namespace varve::bench {
namespace {

constexpr auto kLongestStart = std::chrono::minutes(5);

std::string SourceFile() {
  return std::string(VARVE_SOURCE_DIR) + "/benchmark/hbase/HbaseLoad.java";
}

bool IsInstalled(const std::string& program) {
  bool ok = false;
  Capture({"/bin/sh", "-c", "command -v " + program}, &ok);
  return ok;
}

// Returns the options that HBase's client needs on Java 17.
std::vector<std::string> JavaOptions() {
  std::vector<std::string> options = {"-Xmx512m", "-Djava.net.preferIPv4Stack=true"};
  for (const char* package :
       {"java.lang", "java.lang.reflect", "java.io", "java.nio", "java.net", "java.util",
        "java.util.concurrent", "sun.nio.ch", "jdk.internal.ref"})
    options.push_back(fmt::format("--add-opens=java.base/{}=ALL-UNNAMED", package));
  return options;
}

const char* WorkOf(const Load& load) {
  switch (load.operation) {
    case Operation::kSet:
      return "put";
    case Operation::kGet:
    case Operation::kMultiGet:
      return "get";
    case Operation::kRange:
      return "scan";
    default:
      Fail("the Java client has no such work");
  }
}

}  // namespace

std::string JavaClient::WhyNot(const Settings& settings) {
  for (const char* program : {"java", "javac"}) {
    if (!IsInstalled(program))
      return fmt::format("{} is not installed (packages-cluster.txt, packages-test.txt)", program);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(settings.jars, ignored)) return "";
  return fmt::format("the jars of HBase are not in '{}' (scripts/hbase_cluster.sh jars)",
                     settings.jars);
}

JavaClient::JavaClient(const Settings& settings) {
  const std::string jars = settings.jars + "/*";
  Capture({"javac", "-cp", jars, "-d", settings.directory, SourceFile()});
  const uint16_t port = FreePort();
  std::vector<std::string> arguments;
  if (!settings.cores.empty()) arguments = {"taskset", "-c", settings.cores};
  arguments.emplace_back("java");
  for (std::string& option : JavaOptions()) arguments.push_back(std::move(option));
  for (const std::string& argument :
       {std::string("-cp"), jars + ":" + settings.directory, std::string("HbaseLoad"),
        settings.quorum, settings.table, std::to_string(port), std::to_string(settings.keys),
        std::to_string(settings.value_size)})
    arguments.push_back(argument);
  process_ = std::make_unique<Child>(arguments, settings.directory + "/java.log");
  const auto end = std::chrono::steady_clock::now() + kLongestStart;
  while ((socket_ = ConnectTo(port)) < 0) {
    if (!process_->Running()) Fail("HBase's Java client has ended");
    if (std::chrono::steady_clock::now() > end) Fail("HBase's Java client does not start");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

JavaClient::~JavaClient() { close(socket_); }

std::string JavaClient::Ask(const std::string& line) {
  const std::string request = line + "\n";
  if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    Fail("HBase's Java client takes no work");
  std::string answer;
  char byte = 0;
  while (recv(socket_, &byte, 1, 0) == 1) {
    if (byte == '\n') return answer;
    answer.push_back(byte);
  }
  Fail("HBase's Java client has failed at: " + line);
}

LoadResult JavaClient::Run(const Load& load) {
  const bool is_multi_get = load.operation == Operation::kMultiGet;
  const uint64_t batch = is_multi_get ? load.keys_a_call : static_cast<uint64_t>(load.pipeline);
  const std::string answer = Ask(fmt::format("{} {} {} {} {}", WorkOf(load), load.connections,
                                             batch, load.warm_up_seconds, load.seconds));
  const std::vector<std::string> parts = absl::StrSplit(answer, ' ');
  LoadResult result;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &result.requests) ||
      !absl::SimpleAtod(parts[1], &result.seconds) || !absl::SimpleAtod(parts[2], &result.p50) ||
      !absl::SimpleAtod(parts[3], &result.p99))
    Fail("HBase's Java client has answered: " + answer);
  if (is_multi_get) result.requests /= batch;  // it counts keys
  result.p50 /= 1e6;
  result.p99 /= 1e6;
  return result;
}

void JavaClient::Drop(const std::string& prefix) { Ask("drop " + prefix); }

}  // namespace varve::bench
