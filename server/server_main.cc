// server_main: opens the store in --dir and serves it until SIGTERM or SIGINT.
// Exit codes: 0 after a graceful stop, 1 when the store or the address can't be had or the end was not clean, 2 for a wrong
// command line.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "db/storage_engine.h"
#include "fmt/format.h"
#include "server/server.h"
#include "server/server_flags.h"
#include "spdlog/sinks/basic_file_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

constexpr rlim_t kOwnDescriptors = 1024;  // for files of the store, beside one for each client
constexpr int kForcedExit = 130;

bool StartLog(const ServerCommandLine& line) {
  try {
    auto log =
        line.log_file.empty() ? spdlog::stderr_color_mt("varve") : spdlog::basic_logger_mt("varve", line.log_file);
    spdlog::set_default_logger(std::move(log));
  } catch (const spdlog::spdlog_ex& failed) {
    fmt::print(stderr, "server_main: --logfile={}: {}\n", line.log_file, failed.what());
    return false;
  }
  spdlog::set_level(spdlog::level::from_str(line.log_level));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
  spdlog::flush_on(spdlog::level::info);
  return true;
}

// Raises the limit on open files as far as the system lets us, since a store may have many; where that is too little for all
// clients, fewer are served.
void FitDescriptors(ServerOptions* options) {
  const rlim_t wanted = static_cast<rlim_t>(options->max_clients) + kOwnDescriptors;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  rlim_t files = limit.rlim_cur;
  for (const rlim_t target : {std::max(limit.rlim_max, wanted), limit.rlim_max, wanted}) {
    const rlimit raised{target, std::max(limit.rlim_max, target)};
    if (target <= files || setrlimit(RLIMIT_NOFILE, &raised) != 0) continue;
    files = target;
    break;
  }
  if (files >= wanted) return;
  options->max_clients = files > 2 * kOwnDescriptors ? files - kOwnDescriptors : files / 2;
  spdlog::warn("The limit on open files is {}: at most {} clients are served", files, options->max_clients);
}

// Waits for the first SIGTERM or SIGINT; a second one ends the process at once, which the log survives.
class StopSignals {
 public:
  StopSignals() : signals_(io_, SIGTERM, SIGINT) {}
  ~StopSignals() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void WaitForFirst() {
    signals_.async_wait([](const asio::error_code&, int signal) {
      spdlog::info("{}: stopping, a second signal ends at once", signal == SIGINT ? "SIGINT" : "SIGTERM");
    });
    io_.run();
    io_.restart();
    signals_.async_wait([](const asio::error_code& stopped, int) {
      if (!stopped) std::_Exit(kForcedExit);
    });
    thread_ = std::thread([this] { io_.run(); });
  }

 private:
  asio::io_context io_{1};
  asio::signal_set signals_;
  std::thread thread_;
};

int Serve(ServerCommandLine line) {
  StopSignals signals;  // from here on a signal waits until it can be obeyed
  FitDescriptors(&line.server);
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(line.directory, line.engine);
  if (!store.ok()) {
    spdlog::critical("The store in {} can't be opened: {}", line.directory, store.status().ToString());
    return 1;
  }
  const auto opened = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(store->get(), line.server, ServerSettings(line));
  if (!server.ok()) {
    spdlog::critical("{}", server.status().ToString());
    return 1;
  }
  spdlog::info("varve {} serves {} on {}:{}, opened in {} ms", kVarveVersion, line.directory, line.server.bind,
               (*server)->port(), opened.count());
  signals.WaitForFirst();
  (*server)->Stop();
  server->reset();
  if (const absl::Status closed = (*store)->Close(); !closed.ok()) {
    spdlog::critical("The store could not be closed cleanly: {}", closed.ToString());
    return 1;
  }
  spdlog::info("Stopped");
  return 0;
}

// What nothing can be done about, in whatever thread: said in words instead of a core dump. The log makes this end as safe as any.
[[noreturn]] void EndWithReason() {
  const auto say = [](const char* text) {
    [[maybe_unused]] const auto left = write(STDERR_FILENO, text, strlen(text));
  };
  try {
    if (const std::exception_ptr exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    say("server_main: out of memory; the caches and write buffers are the largest part, see --help\n");
    std::_Exit(1);
  } catch (const std::system_error& failed) {
    say("server_main: the system gives no more threads, files or memory: ");
    say(failed.what());
    say("\n");
    std::_Exit(1);
  } catch (...) {
    say("server_main: a defect of the program\n");
  }
  std::abort();
}

int Main(int argc, char** argv) {
  std::set_terminate(EndWithReason);
  umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<ServerCommandLine> line = ParseServerCommandLine(argc, argv);
  if (!line.ok()) {
    fmt::print(stderr, "server_main: {}\n", std::string(line.status().message()));
    return 2;
  }
  if (line->help || line->version) {
    fmt::print("{}", line->help ? ServerHelp() : fmt::format("varve {}\n", kVarveVersion));
    return 0;
  }
  if (!StartLog(*line)) return 1;
  return Serve(*std::move(line));
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) { return varve::Main(argc, argv); }
