#include "unit-tests/prove/failover/follower.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "client/client.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/caller.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/failover/servers.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Eventually;
using Words = std::vector<std::string>;

constexpr size_t kPrimary = 0, kFollower = 1;
constexpr std::string_view kNoReply = "(lost)";

// What the readers and writers share.
struct Shared {
  std::atomic<int64_t> newest{0};  // the newest version that was acknowledged to anybody
  std::atomic<uint64_t> acknowledged{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<bool> stop{false};
};

bool IsLost(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnknown(status);
}

// A client that writes to the primary and reads from the follower.
class ReaderWriter {
 public:
  ReaderWriter(size_t id, const FollowerOptions& options, Shared* shared)
      : id_(id), keys_(options.keys), random_(options.seed * 1000 + id), shared_(*shared) {}

  // Returns when the connection to the primary is lost. Lost ones to the follower are made again.
  void Run(uint16_t primary, uint16_t follower) {
    std::unique_ptr<Client> writer = Connected(primary), reader;
    while (writer != nullptr && error_.empty() && !shared_.stop) {
      const std::string key = fmt::format("k{}", random_() % keys_);
      if (random_() % 2 == 0) {
        if (!Write(writer.get(), key)) return;
      } else {
        if (reader == nullptr) reader = Connected(follower);
        if (reader == nullptr || !Read(reader.get(), key)) reader = nullptr;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
    }
  }

  // The primary died: what was under way took effect, or never. Readers of the follower see that
  // once the follower has everything.
  void Died() {
    if (!pending_.empty()) lost_.push_back(fmt::format("{} {{}} {} ?", called_, pending_));
    pending_.clear();
  }
  // The follower has everything that the primary had when it died.
  void Settle(int64_t now) {
    for (const std::string& line : lost_)
      lines_.push_back(fmt::format("{} {}", id_, fmt::format(fmt::runtime(line), now)));
    lost_.clear();
  }

  const std::vector<std::string>& lines() const { return lines_; }
  const std::string& error() const { return error_; }

 private:
  static std::unique_ptr<Client> Connected(uint16_t port) {
    auto client = Client::Connect("127.0.0.1", port, std::chrono::seconds(120));
    return client.ok() ? *std::move(client) : nullptr;
  }

  void Note(const std::string& words, int64_t call, const std::string& result) {
    lines_.push_back(fmt::format("{} {} {} {} {}", id_, call, HistoryNow(), words, result));
  }

  // The write is done when others may know its version.
  bool Write(Client* client, const std::string& key) {
    const std::string number = fmt::format("{}", ++last_number_ * 1000 + id_ + 1);
    pending_ = fmt::format("set {} {}", key, number);
    called_ = HistoryNow();
    const absl::Status written = client->Call({"SET", key, number}).status();
    if (!written.ok() && !IsLost(written)) error_ = pending_ + ": " + written.ToString();
    if (!written.ok()) return false;
    const absl::StatusOr<Reply> version = client->Call({"CLIENT", "VERSION"});
    if (!version.ok()) return false;
    int64_t newest = shared_.newest;
    while (newest < version->integer &&
           !shared_.newest.compare_exchange_weak(newest, version->integer))
      continue;
    Note(std::exchange(pending_, {}), called_, "ok");
    ++shared_.acknowledged;
    return true;
  }

  bool Read(Client* client, const std::string& key) {
    const int64_t call = HistoryNow();
    const std::string version = std::to_string(shared_.newest.load());
    const absl::StatusOr<Reply> has = client->Call({"READAFTER", version, "0"});
    if (IsLost(has.status())) return false;
    if (!has.ok()) error_ = "READAFTER " + version + ": " + has.status().ToString();
    const absl::StatusOr<Reply> value = client->Call({"GET", key});
    if (!value.ok()) return false;
    Note("get " + key, call, value->is_null() ? "-" : value->text);
    ++shared_.reads;
    return true;
  }

  const size_t id_;
  const size_t keys_;
  std::mt19937_64 random_;
  Shared& shared_;
  uint64_t last_number_ = 0;
  int64_t called_ = 0;
  std::string pending_;            // the write whose reply is missing
  std::vector<std::string> lost_;  // lines of such writes, with {} for the time
  std::vector<std::string> lines_;
  std::string error_;
};

class FollowerRun {
 public:
  explicit FollowerRun(const FollowerOptions& options)
      : options_(options),
        random_(options.seed),
        flags_(Flags()),
        servers_(options.server, options.directory, 2, flags_) {
    for (size_t i = 0; i < options.callers; ++i) callers_.emplace_back(i, options, &shared_);
  }

  FollowerFigures Run() {
    const auto begin = steady_clock::now();
    absl::Status status = Begin();
    for (; status.ok() && figures_.rounds < options_.rounds; ++figures_.rounds) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      status = Round();
    }
    if (status.ok()) status = End();
    if (!status.ok()) {
      figures_.complaints.push_back(fmt::format("round {} (seed {}, {}): {}", figures_.rounds,
                                                options_.seed, fmt::join(flags_, " "),
                                                std::string(status.message())));
    }
    StopCallers().IgnoreError();
    figures_.acknowledged = shared_.acknowledged;
    figures_.reads = shared_.reads;
    for (const ReaderWriter& caller : callers_) {
      figures_.operations += caller.lines().size();
      figures_.lines.insert(figures_.lines.end(), caller.lines().begin(), caller.lines().end());
    }
    return std::move(figures_);
  }

 private:
  // The past is kept so that it can be compared. In mode no, a follower gets what the primary's
  // disk gets at some time or other, and nobody could wait for it.
  std::vector<std::string> Flags() {
    std::vector<std::string> flags = SettingsOf(Draw(4) == 0 ? 1 : 0, &random_);
    flags.emplace_back("--keep=1h");
    return flags;
  }

  size_t Draw(size_t count) { return random_() % count; }
  void Sleep(uint64_t most_ms) { std::this_thread::sleep_for(milliseconds(Draw(most_ms + 1))); }

  absl::Status Begin() {
    VARVE_RETURN_IF_ERROR(servers_.Start(kPrimary));
    VARVE_RETURN_IF_ERROR(servers_.Start(kFollower));
    VARVE_RETURN_IF_ERROR(servers_.Follow(kFollower, kPrimary));
    VARVE_RETURN_IF_ERROR(servers_.AwaitLink(kFollower, kPrimary));
    return CheckCopies(1);
  }

  // Followers go on from where they are; `copies` is how many were taken since the primary's start.
  absl::Status CheckCopies(int copies) {
    const std::string full = servers_.Info(kPrimary, "stats", "sync_full");
    if (full == std::to_string(copies)) return absl::OkStatus();
    return absl::InternalError(
        fmt::format("{} copies were taken: {}", full, servers_.log(kFollower)));
  }

  absl::Status Round() {
    for (ReaderWriter& caller : callers_) {
      threads_.emplace_back([this, &caller] {
        caller.Run(servers_.Clients(kPrimary).port(), servers_.Clients(kFollower).port());
      });
    }
    VARVE_RETURN_IF_ERROR(AwaitLoad());
    for (size_t i = Draw(5); i > 0; --i) {
      VARVE_RETURN_IF_ERROR(Disturb());
      VARVE_RETURN_IF_ERROR(CompareAt());
      if (Draw(2) == 0) VARVE_RETURN_IF_ERROR(AwaitLoad());
    }
    Sleep(50);
    VARVE_RETURN_IF_ERROR(CheckCopies(figures_.rounds == 0 ? 1 : 0));
    ++figures_.kills;
    servers_.Kill(kPrimary);
    VARVE_RETURN_IF_ERROR(StopCallers());
    for (ReaderWriter& caller : callers_) caller.Died();
    VARVE_RETURN_IF_ERROR(servers_.Start(kPrimary));
    return Draw(2) == 0 ? CompareAt() : CatchUp();
  }

  absl::Status CatchUp() {
    VARVE_RETURN_IF_ERROR(servers_.AwaitAll(kFollower, kPrimary));
    for (ReaderWriter& caller : callers_) caller.Settle(HistoryNow());
    return absl::OkStatus();
  }

  // Waits until a write is acknowledged and the follower is read from.
  absl::Status AwaitLoad() {
    const uint64_t writes = shared_.acknowledged, reads = shared_.reads;
    if (Eventually([&] { return shared_.acknowledged > writes && shared_.reads > reads; }))
      return absl::OkStatus();
    return absl::InternalError(fmt::format("{} writes and {} reads, and no more: {}\n{}",
                                           shared_.acknowledged.load(), shared_.reads.load(),
                                           servers_.log(kPrimary), servers_.log(kFollower)));
  }

  // Readers may wait for a version that does not come while the primary is down.
  absl::Status StopCallers() {
    shared_.stop = true;
    for (const size_t server : {kPrimary, kFollower}) servers_.Clients(server).Cut();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    for (const size_t server : {kPrimary, kFollower}) servers_.Clients(server).Restore();
    shared_.stop = false;
    for (const ReaderWriter& caller : callers_)
      if (!caller.error().empty()) return absl::InternalError(caller.error());
    return absl::OkStatus();
  }

  absl::Status Disturb() {
    Sleep(40);
    const size_t what = Draw(4);
    if (what == 0) {
      ++figures_.kills;
      servers_.Kill(kFollower);
      Sleep(20);
      return servers_.Start(kFollower);
    }
    ++figures_.cuts;
    Proxy& link = servers_.Link(kFollower, kPrimary);
    what == 1 ? link.Stall() : link.Cut();
    Sleep(what == 3 ? 0 : 40);
    link.Restore();
    return absl::OkStatus();
  }

  // What the follower has at its version is what the primary had.
  absl::Status CompareAt() {
    const std::string version = servers_.Info(kFollower, "replication", "slave_repl_offset");
    if (version.empty() || version == "0") return absl::OkStatus();
    for (size_t i = 0; i < options_.keys; ++i) {
      const Words request = {"GET", fmt::format("k{}", i), "AT", version};
      const std::string mine = servers_.Ask(kFollower, request);
      const std::string wanted = servers_.Ask(kPrimary, request);
      if (mine == kNoReply || mine != wanted) {
        return absl::InternalError(
            fmt::format("k{} at version {} is {} on the follower and {} on "
                        "the primary",
                        i, version, mine, wanted));
      }
      ++figures_.compared;
    }
    return absl::OkStatus();
  }

  absl::Status End() {
    VARVE_RETURN_IF_ERROR(CatchUp());
    for (size_t i = 0; i < options_.keys; ++i) {
      for (const std::string command : {"GET", "VERSION"}) {
        const Words request = {command, fmt::format("k{}", i)};
        if (servers_.Ask(kFollower, request) != servers_.Ask(kPrimary, request))
          return absl::InternalError(fmt::format("{} k{} differs", command, i));
      }
    }
    return CheckCopies(options_.rounds == 0 ? 1 : 0);
  }

  const FollowerOptions options_;
  std::mt19937_64 random_;
  const std::vector<std::string> flags_;
  Servers servers_;
  Shared shared_;
  std::deque<ReaderWriter> callers_;
  std::vector<std::thread> threads_;
  FollowerFigures figures_;
};

}  // namespace

FollowerFigures RunFollower(const FollowerOptions& options) { return FollowerRun(options).Run(); }

}  // namespace varve::prove
