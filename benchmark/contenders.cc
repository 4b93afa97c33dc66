#include "benchmark/contenders.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "benchmark/load_generator.h"

namespace varve::bench {
namespace {

std::vector<std::string> Arguments(const std::string& id, const std::string& sync, size_t value_size, uint16_t port,
                                   const std::string& directory) {
  const std::string port_text = std::to_string(port);
  if (id == "varve") {
    const std::string program = ProgramDirectory() + "/server_main";
    if (!std::filesystem::exists(program))
      Fail("there is no " + program + ": build it first, or leave varve out of --servers");
    return {program, "--bind=127.0.0.1", "--port=" + port_text, "--dir=" + directory, "--sync=" + sync};
  }
  if (id == "redis") {
    return {"redis-server",
            "--bind",
            "127.0.0.1",
            "--port",
            port_text,
            "--dir",
            directory,
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            sync,
            "--auto-aof-rewrite-percentage",
            "0",
            "--loglevel",
            "warning"};
  }
  return {ProgramPath(), "--null_server_port=" + port_text, fmt::format("--null_server_value_size={}", value_size)};
}

}  // namespace

const std::vector<Contender>& AllContenders() {
  static const std::vector<Contender>* const contenders =
      new std::vector<Contender>{{"varve", "Varve"}, {"redis", "Redis"}, {"null", "null server"}};
  return *contenders;
}

Server::Server(const Contender& contender, const std::string& sync, size_t value_size, const std::string& directory,
               const std::vector<std::string>& extra)
    : contender_(contender), directory_(directory), port_(FreePort()) {
  constexpr auto kStep = std::chrono::milliseconds(20);
  constexpr int kMaxSteps = 1500;
  MakeEmptyDirectory(directory_);
  std::vector<std::string> arguments = Arguments(contender.id, sync, value_size, port_, directory_);
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  process_ = std::make_unique<Child>(arguments, directory_ + ".log");
  for (int step = 0; !AnswersPing(port_); ++step) {
    if (!process_->Running()) Fail(contender_.title + " ended instead of serving");
    if (step == kMaxSteps) Fail(contender_.title + " does not answer");
    std::this_thread::sleep_for(kStep);
  }
}

Server::~Server() {
  process_.reset();
  RemoveDirectory(directory_);
}

}  // namespace varve::bench
