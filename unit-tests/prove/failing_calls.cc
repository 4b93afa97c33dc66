#include "unit-tests/prove/failing_calls.h"

#include <signal.h>

#include <filesystem>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "fmt/format.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/loop_device.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;

constexpr const char* kCalls[] = {"fdatasync", "fsync", "pwrite64"};

uint64_t CountInjected(const std::string& trace) {
  uint64_t count = 0;
  for (size_t at = trace.find("(INJECTED)"); at != std::string::npos;
       at = trace.find("(INJECTED)", at + 1))
    ++count;
  return count;
}

class FailingCalls {
 public:
  FailingCalls(const CycleOptions& options, std::unique_ptr<LoopDevice> device)
      : options_(options),
        device_(std::move(device)),
        trace_(options.directory + "/trace"),
        data_((device_ != nullptr ? device_->path() : options.directory) + "/data"),
        random_(options.seed),
        fleet_(options.writers, options.seed) {
    result_.power_was_cut = device_ != nullptr;
  }

  absl::StatusOr<FailureFigures> Run() {
    const auto begin = steady_clock::now();
    for (uint64_t cycle = 0; cycle < 3 * options_.cycles && result_.figures.complaints.empty();
         ++cycle) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      VARVE_RETURN_IF_ERROR(Cycle(kCalls[cycle % 3], Nth(kCalls[cycle % 3], cycle / 3)));
      ++result_.figures.cycles;
    }
    return std::move(result_);
  }

 private:
  // Writes are many, most of them zeros for the log's next file: one n after the other at first,
  // then in leaps.
  static uint64_t Nth(std::string_view call, uint64_t index) {
    return call == "pwrite64" && index >= 8 ? 8 + (index - 8) * 29 : index + 1;
  }

  absl::Status Cycle(const std::string& call, uint64_t n) {
    std::vector<std::string> flags = SettingsOf(0, &random_);
    flags.emplace_back("--sync-backend=pwrite");
    const std::string what = fmt::format("{} number {} (seed {})", call, n, options_.seed);
    std::filesystem::remove(trace_);
    {
      ServerProcess server(options_.server, data_, flags,
                           {"strace", "-D", "-f", "-qq", "-o", trace_, "-e", "trace=" + call, "-e",
                            fmt::format("inject={}:error=EIO:when={}", call, n)});
      if (server.port() == 0) {
        ++result_.failed_starts;
        if (server.log().find("EIO") == std::string::npos)
          Complain(what + ": no reason is given: " + server.log());
      } else {
        VARVE_RETURN_IF_ERROR(fleet_.Start(server.port(), /*depth=*/1));
        std::this_thread::sleep_for(milliseconds(50 + random_() % 300));
        fleet_.Stop();
        fleet_.Join();
        CheckWords(server.port(), what);
      }
      if (device_ != nullptr) VARVE_RETURN_IF_ERROR(device_->CutPower(LoopDevice::Cut::kNothing));
      server.process().Kill(SIGKILL);
      server.process().Wait();
    }
    result_.failed_calls += CountInjected(ReadFile(trace_));
    if (device_ != nullptr) VARVE_RETURN_IF_ERROR(device_->Remount());

    ServerProcess server(options_.server, data_, flags);
    if (server.port() == 0) {
      Complain(what + ": the server does not start again: " + server.log());
      return absl::OkStatus();
    }
    result_.figures.Add(fleet_.Check(server.port()));
    if (!result_.figures.complaints.empty()) Complain(what);
    server.process().Kill(SIGTERM);
    server.process().Wait();
    return absl::OkStatus();
  }

  // A server that refuses writes says so to everybody, and why; one that doesn't takes them.
  void CheckWords(uint16_t port, const std::string& what) {
    const absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", port, std::chrono::seconds(60));
    if (!client.ok()) return Complain(what + ": " + client.status().ToString());
    const absl::Status put = (*client)->Put("probe", "x");
    const absl::StatusOr<Reply> info = (*client)->Call({"INFO", "persistence"});
    if (!info.ok()) return Complain(what + ": " + info.status().ToString());
    const bool says_failed = info->text.find("aof_last_write_status:err") != std::string::npos &&
                             info->text.find("(EIO)") != std::string::npos;
    // Where only a segment or the log's next file can't be made, nothing is at stake, and writes
    // resume by themselves.
    const std::string words(put.message());
    const bool for_now =
        words.starts_with("MISCONF ") && words.find("writes resume when") != std::string::npos;
    const bool for_good = words.starts_with("MISCONF the log failed");
    if (for_good) ++result_.refusing;
    if ((!put.ok() && !for_now && !for_good) || for_good != says_failed) {
      Complain(fmt::format("{}: a write ends with \"{}\", but INFO says {}", what, put.ToString(),
                           info->text));
    }
    if (const absl::StatusOr<int64_t> gone = (*client)->Delete({"probe"});
        for_good && gone.value_or(0) > 0) {
      Complain(what + ": a delete was taken after a write was refused");
    }
    if (const absl::StatusOr<Reply> read = (*client)->Call({"GET", "w0:0000"}); !read.ok()) {
      Complain(what + ": reads don't go on: " + read.status().ToString());
    }
  }

  void Complain(std::string complaint) {
    result_.figures.complaints.push_back(std::move(complaint));
  }

  const CycleOptions options_;
  const std::unique_ptr<LoopDevice> device_;
  const std::string trace_;
  const std::string data_;
  std::mt19937_64 random_;
  Fleet fleet_;
  FailureFigures result_;
};

}  // namespace

absl::StatusOr<FailureFigures> RunFailingCalls(const CycleOptions& options) {
  const std::string log = options.directory + "/strace.log";
  if (Process("strace", {"-f", "-qq", "-o", "/dev/null", "true"}, log).Wait() != 0) {
    return absl::UnavailableError("strace is not installed, or may not trace: " +
                                  ReadFile(log).substr(0, 200));
  }
  absl::StatusOr<std::unique_ptr<LoopDevice>> device = LoopDevice::Mount(options.directory);
  return FailingCalls(options, device.ok() ? *std::move(device) : nullptr).Run();
}

}  // namespace varve::prove
