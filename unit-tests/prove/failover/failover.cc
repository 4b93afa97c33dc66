#include "unit-tests/prove/failover/failover.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/failover/servers.h"
#include "unit-tests/prove/failover/team.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Eventually;

constexpr size_t kServers = 3;
constexpr size_t kAskedTogether = 500;
constexpr size_t kCompared = 200;  // keys

// How far a server has come: whose history it has, as a place among those that the script began,
// and up to which version.
struct Standing {
  int64_t history = -1;
  uint64_t version = 0;

  friend auto operator<=>(const Standing&, const Standing&) = default;
};

// One promotion.
struct Switch {
  size_t old_team = 0;
  int64_t ended = 0;     // when the old primary was killed or cut off
  int64_t promoted = 0;  // when the new one said OK
};

uint64_t NumberOf(const std::string& text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Adds the keys that the file sets.
void AddKeysOf(const std::string& path, std::set<std::string>* keys) {
  constexpr std::string_view kSet = "\r\n$3\r\nSET\r\n$";
  const std::string text = testing::ReadFile(path);
  for (size_t at = text.find(kSet); at != std::string::npos; at = text.find(kSet, at + 1)) {
    const size_t begin = text.find("\r\n", at + kSet.size()) + 2;
    keys->insert(text.substr(begin, text.find("\r\n", begin) - begin));
  }
}

class Failovers {
 public:
  explicit Failovers(const FailoverOptions& options)
      : options_(options),
        random_(options.seed),
        flags_(Flags()),
        servers_(options.server, options.directory, kServers, flags_),
        seen_(options.keys) {
    const CallerKind kind = options.own_keys ? CallerKind::kOwnKeys : CallerKind::kShared;
    for (size_t i = 0; i < teams_.size(); ++i) {
      teams_[i] =
          std::make_unique<Team>(i * options.callers, options.callers, options.seed, &seen_, kind);
    }
  }

  FailoverFigures Run() {
    const auto begin = steady_clock::now();
    absl::Status status = Begin();
    while (status.ok() && switches_.size() < options_.failovers) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      status = Round();
    }
    if (status.ok()) status = End();
    if (!status.ok()) {
      figures_.complaints.push_back(fmt::format("failover {} (seed {}, {}): {}", switches_.size(),
                                                options_.seed, fmt::join(flags_, " "),
                                                std::string(status.message())));
    }
    // Callers that are left over end with their servers.
    for (size_t i = 0; i < kServers; ++i) servers_.Kill(i);
    for (const std::unique_ptr<Team>& team : teams_) team->Join().IgnoreError();
    Count();
    return std::move(figures_);
  }

 private:
  std::vector<std::string> Flags() {
    std::vector<std::string> flags =
        SettingsOf(options_.sync_replicas ? 0 : options_.seed, &random_);
    if (options_.sync_replicas) flags.emplace_back("--sync-replicas=1");
    return flags;
  }

  Team& team() { return *teams_[active_]; }
  size_t Draw(size_t count) { return random_() % count; }
  void Sleep(uint64_t most_ms) { std::this_thread::sleep_for(milliseconds(Draw(most_ms + 1))); }
  size_t OtherThan(size_t one, size_t two) const { return kServers - one - two; }

  absl::Status Begin() {
    for (size_t i = 0; i < kServers; ++i) VARVE_RETURN_IF_ERROR(servers_.Start(i));
    for (size_t i = 1; i < kServers; ++i) VARVE_RETURN_IF_ERROR(servers_.Follow(i, primary_));
    for (size_t i = 1; i < kServers; ++i) VARVE_RETURN_IF_ERROR(servers_.AwaitLink(i, primary_));
    histories_.push_back(servers_.Info(primary_, "replication", "master_replid"));
    return StartTeam();
  }

  // Has the active team call the primary, and waits until it is acknowledged a write.
  absl::Status StartTeam() {
    const uint64_t before = team().acknowledged();
    since_[&team()] = HistoryNow();
    VARVE_RETURN_IF_ERROR(team().Start(servers_.Clients(primary_).port()));
    if (Eventually([&] { return team().acknowledged() > before; })) return absl::OkStatus();
    return absl::InternalError(fmt::format("the primary {} acknowledges nothing: {}\n{}", primary_,
                                           servers_.Ask(primary_, {"INFO", "replication"}),
                                           servers_.log(primary_)));
  }

  // --- What goes wrong ---------------------------------------------------------------------------

  absl::Status Round() {
    for (size_t i = Draw(4); i > 0; --i) VARVE_RETURN_IF_ERROR(Disturb());
    Sleep(60);
    switch (Draw(5)) {
      case 0:
        return RestartPrimary();
      case 1:
      case 2:
        return KillAndPromote();
      default:
        return CutAndPromote();
    }
  }

  // Kills a follower or takes its link.
  absl::Status Disturb() {
    Sleep(40);
    const size_t follower = (primary_ + 1 + Draw(2)) % kServers;
    const size_t what = Draw(4);
    if (what == 0) {
      ++figures_.kills;
      servers_.Kill(follower);
      Sleep(20);
      return servers_.Start(follower);
    }
    ++figures_.cuts;
    Proxy& link = servers_.Link(follower, primary_);
    what == 1 ? link.Stall() : link.Cut();
    Sleep(what == 3 ? 0 : 40);
    link.Restore();
    return absl::OkStatus();
  }

  absl::Status KillPrimary() {
    ++figures_.kills;
    servers_.Kill(primary_);
    const int64_t death = HistoryNow();
    VARVE_RETURN_IF_ERROR(team().Join());
    team().Died(death);
    return absl::OkStatus();
  }

  // The primary dies and comes back before anybody promotes another one.
  absl::Status RestartPrimary() {
    VARVE_RETURN_IF_ERROR(KillPrimary());
    VARVE_RETURN_IF_ERROR(servers_.Start(primary_));
    return team().Start(servers_.Clients(primary_).port());
  }

  absl::Status KillAndPromote() {
    const size_t old = primary_;
    VARVE_RETURN_IF_ERROR(KillPrimary());
    VARVE_RETURN_IF_ERROR(PromoteBest(HistoryNow()));
    VARVE_RETURN_IF_ERROR(StartTeam());
    Sleep(40);
    VARVE_RETURN_IF_ERROR(servers_.Start(old));
    VARVE_RETURN_IF_ERROR(Return(old));
    return CheckKeysOf(*teams_[1 - active_]);
  }

  // Clients go on calling the old primary, which is as able to write as ever.
  absl::Status CutAndPromote() {
    const size_t old = primary_;
    Team& stragglers = team();
    // What it tells to readers may be old once another primary takes writes.
    if (options_.sync_replicas) stragglers.OnlySets();
    servers_.Isolate(old);
    const int64_t cut = HistoryNow();
    VARVE_RETURN_IF_ERROR(PromoteBest(cut));
    const int64_t promoted = switches_.back().promoted;
    VARVE_RETURN_IF_ERROR(StartTeam());
    Sleep(40);
    servers_.Rejoin(old);
    VARVE_RETURN_IF_ERROR(Return(old));
    servers_.Clients(old).Cut();
    VARVE_RETURN_IF_ERROR(stragglers.Join());
    servers_.Clients(old).Restore();
    stragglers.Died(promoted);
    if (!options_.sync_replicas) return CheckKeysOf(stragglers);
    for (const Caller& caller : stragglers.callers()) {
      for (const Operation& operation : caller.operations()) {
        if (operation.call > cut && operation.is_acknowledged_write())
          return absl::InternalError("a primary that was cut off acknowledged " + operation.words);
      }
    }
    return CheckKeysOf(stragglers);
  }

  // --- The script --------------------------------------------------------------------------------

  // Nothing: it begins anew at present, or is about to, with a copy that the old primary still
  // sent, and that may have more than what it has now.
  std::optional<Standing> StandingOf(size_t server) {
    const std::string text = servers_.Ask(server, {"INFO", "replication"});
    const auto field = [&](const std::string& name) {
      const size_t at = text.find("\n" + name + ":");
      if (at == std::string::npos) return std::string();
      const size_t from = at + name.size() + 2;
      return text.substr(from, text.find('\r', from) - from);
    };
    if (field("role").empty() || field("master_sync_in_progress") == "1") return std::nullopt;
    const auto found = std::find(histories_.begin(), histories_.end(), field("master_replid"));
    return Standing{.history = found == histories_.end() ? -1 : found - histories_.begin(),
                    .version = NumberOf(field("slave_repl_offset"))};
  }

  // `ended`: when the old primary was killed or cut off.
  absl::Status PromoteBest(int64_t ended) {
    std::array<Standing, 2> standings;
    const std::array<size_t, 2> others = {(primary_ + 1) % kServers, (primary_ + 2) % kServers};
    for (size_t i = 0; i < 2; ++i) {
      std::optional<Standing> standing;
      if (!Eventually([&] { return (standing = StandingOf(others[i])).has_value(); }))
        return absl::InternalError("a follower does not come back: " + servers_.log(others[i]));
      standings[i] = *standing;
    }
    const size_t best = standings[0] < standings[1] ? 1 : 0;
    VARVE_RETURN_IF_ERROR(servers_.Promote(others[best]));
    switches_.push_back({.old_team = active_, .ended = ended, .promoted = HistoryNow()});
    primary_ = others[best];
    active_ = 1 - active_;
    histories_.push_back(servers_.Info(primary_, "replication", "master_replid"));
    return servers_.Follow(others[1 - best], primary_);
  }

  // The old primary is told whom to follow.
  absl::Status Return(size_t old) {
    VARVE_RETURN_IF_ERROR(servers_.Follow(old, primary_));
    // Else it is killed again, or becomes a primary, in the middle of it now and then.
    if (!options_.sync_replicas || Draw(3) != 0)
      VARVE_RETURN_IF_ERROR(servers_.AwaitLink(old, primary_));
    return absl::OkStatus();
  }

  // --- What may be lost --------------------------------------------------------------------------

  // Looks for what the team was acknowledged since it began to call last. Requires: without
  // sync-replicas, the team's server has followed the primary since.
  absl::Status CheckKeysOf(const Team& team) {
    if (!options_.own_keys) return absl::OkStatus();
    const std::vector<std::string> keys = KeysOf(team, since_.at(&team));
    return CheckKeys(keys, options_.sync_replicas ? std::set<std::string>() : Diverged());
  }

  // Returns the keys that were acknowledged at `since` or later.
  static std::vector<std::string> KeysOf(const Team& team, int64_t since) {
    std::vector<std::string> keys;
    for (const Caller& caller : team.callers()) {
      for (const Operation& operation : caller.operations()) {
        if (operation.done >= since && operation.is_acknowledged_write())
          keys.push_back(operation.key);
      }
    }
    return keys;
  }

  // Returns what the diverged files of all servers hold.
  std::set<std::string> Diverged() const {
    std::set<std::string> keys;
    for (size_t i = 0; i < kServers; ++i) {
      for (const auto& entry : fs::directory_iterator(servers_.directory(i))) {
        if (entry.path().filename().string().starts_with("diverged-"))
          AddKeysOf(entry.path().string(), &keys);
      }
    }
    return keys;
  }

  // Each of the keys is in the primary or in a file, and what is in a file is not in the primary.
  absl::Status CheckKeys(const std::vector<std::string>& keys,
                         const std::set<std::string>& diverged) {
    std::vector<std::string> asked = keys;
    asked.insert(asked.end(), diverged.begin(), diverged.end());
    for (size_t at = 0; at < asked.size(); at += kAskedTogether) {
      const size_t end = std::min(at + kAskedTogether, asked.size());
      std::vector<std::string> request = {"MGET"};
      request.insert(request.end(), asked.begin() + static_cast<std::ptrdiff_t>(at),
                     asked.begin() + static_cast<std::ptrdiff_t>(end));
      const std::string reply = servers_.Ask(primary_, request);
      size_t from = 0;
      for (size_t i = at; i < end; ++i) {
        const size_t line = reply.find('\n', from);
        if (line == std::string::npos) return absl::InternalError("MGET says " + reply);
        const bool is_there = reply.compare(from, line - from, "(nil)") != 0;
        from = line + 1;
        if (is_there != diverged.contains(asked[i])) continue;
        return absl::InternalError(
            is_there ? fmt::format("{} is in the diverged file and in the new primary", asked[i])
                     : fmt::format("{} was acknowledged and is nowhere", asked[i]));
      }
    }
    return absl::OkStatus();
  }

  // --- The end -----------------------------------------------------------------------------------

  absl::Status End() {
    VARVE_RETURN_IF_ERROR(KillPrimary());
    VARVE_RETURN_IF_ERROR(servers_.Start(primary_));
    for (size_t i = 0; i < kServers; ++i)
      if (i != primary_) VARVE_RETURN_IF_ERROR(servers_.AwaitAll(i, primary_));
    std::vector<std::string> keys;
    if (options_.own_keys) {
      for (const std::unique_ptr<Team>& each : teams_) {
        const std::vector<std::string> written = KeysOf(*each, 0);
        keys.insert(keys.end(), written.begin(), written.end());
      }
      const std::set<std::string> diverged = Diverged();
      figures_.diverged = static_cast<uint64_t>(
          std::count_if(keys.begin(), keys.end(),
                        [&](const std::string& key) { return diverged.contains(key); }));
      if (options_.sync_replicas && figures_.diverged != 0)
        return absl::InternalError("what was acknowledged is in a diverged file");
      VARVE_RETURN_IF_ERROR(CheckKeys(keys, diverged));
      keys.resize(std::min(keys.size(), kCompared));
    } else {
      for (size_t i = 0; i < options_.keys; ++i) keys.push_back(fmt::format("k{}", i));
    }
    return Compare(keys);
  }

  // All servers have the same, with the same versions. What is there at the end is read once more
  // for the history.
  absl::Status Compare(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      const int64_t call = HistoryNow();
      const std::string value = servers_.Ask(primary_, {"GET", key});
      figures_.lines.push_back(
          fmt::format("{} {} {} get {} {}", teams_.size() * options_.callers, call, HistoryNow(),
                      key, value == "(nil)" ? "-" : value.substr(0, value.find(':'))));
      const std::string version = servers_.Ask(primary_, {"VERSION", key});
      for (size_t i = 0; i < kServers; ++i) {
        if (servers_.Ask(i, {"GET", key}) != value || servers_.Ask(i, {"VERSION", key}) != version)
          return absl::InternalError(fmt::format("{} differs on server {}", key, i));
      }
    }
    const std::string size = servers_.Ask(primary_, {"DBSIZE"});
    for (size_t i = 0; i < kServers; ++i) {
      if (servers_.Ask(i, {"DBSIZE"}) != size)
        return absl::InternalError(fmt::format("server {} has another number of keys", i));
    }
    return absl::OkStatus();
  }

  void Count() {
    figures_.failovers = switches_.size();
    for (const std::unique_ptr<Team>& each : teams_) {
      for (const Caller& caller : each->callers()) {
        figures_.operations += caller.operations().size();
        figures_.reads += static_cast<uint64_t>(std::count_if(
            caller.operations().begin(), caller.operations().end(), [](const Operation& operation) {
              return operation.feed.kind == FeedCall::Kind::kGet && !operation.result.empty();
            }));
        figures_.acknowledged += caller.acknowledged();
        caller.Write(&figures_.lines);
      }
    }
    for (const Switch& each : switches_) {
      const std::optional<milliseconds> gap = GapOf(each);
      if (gap) figures_.gaps.push_back(*gap);
    }
    std::sort(figures_.gaps.begin(), figures_.gaps.end());
  }

  // Nothing: the new primary acknowledged nothing.
  std::optional<milliseconds> GapOf(const Switch& at) const {
    int64_t last = 0, first = INT64_MAX;
    for (const Caller& caller : teams_[at.old_team]->callers()) {
      for (const Operation& operation : caller.operations())
        if (operation.is_acknowledged_write() && operation.done <= at.ended)
          last = std::max(last, operation.done);
    }
    for (const Caller& caller : teams_[1 - at.old_team]->callers()) {
      for (const Operation& operation : caller.operations())
        if (operation.is_acknowledged_write() && operation.call >= at.promoted)
          first = std::min(first, operation.done);
    }
    if (last == 0 || first == INT64_MAX) return std::nullopt;
    return std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds(first - last));
  }

  const FailoverOptions options_;
  std::mt19937_64 random_;
  const std::vector<std::string> flags_;
  Servers servers_;
  LastSeen seen_;
  std::array<std::unique_ptr<Team>, 2> teams_;
  std::map<const Team*, int64_t> since_;  // when it began to call a new primary
  size_t active_ = 0;                     // the team that calls the primary
  size_t primary_ = 0;                    // by the script's word
  std::vector<std::string> histories_;
  std::vector<Switch> switches_;
  FailoverFigures figures_;
};

}  // namespace

FailoverFigures RunFailovers(const FailoverOptions& options) { return Failovers(options).Run(); }

}  // namespace varve::prove
