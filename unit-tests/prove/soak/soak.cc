#include "unit-tests/prove/soak/soak.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "fmt/format.h"
#include "unit-tests/prove/soak/load.h"
#include "unit-tests/prove/soak/state_sum.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;
using testing::Process;
using testing::ServerProcess;
using Words = std::vector<std::string>;

// Error replies, by their first words, that the load, the archiver and the follower may be given:
// a full directory, a past that is trimmed, ERR as ExplainedErrors() counts it, and a follower that
// has to join again because a loaded machine kept it silent for longer than the primary waits.
const std::set<std::string, std::less<>>& ExpectedErrors() {
  static const auto* const words =
      new std::set<std::string, std::less<>>{"MISCONF", "TRIMMED", "ERR", "LOADING", "NOTJOINED"};
  return *words;
}

// An archiver that begins asks for a feed that is not there yet.
constexpr uint64_t kFeedsMissed = 1;

// Files that a process has open besides those of its directory, and threads that it may begin under
// load.
constexpr uint64_t kOtherDescriptors = 200, kOtherThreads = 16;

// Once in so many looks at the time, clients are looked for that have said nothing for so many
// seconds; the latest lines about them are kept.
constexpr int kLooksPerList = 100, kLongSilence = 60;
constexpr size_t kMostSilent = 20;

// A load that takes so long has time for everything.
constexpr std::chrono::seconds kLongLoad{60};

// Returns whether the condition comes to hold within the soak's patience.
template <typename Condition>
bool Comes(const Condition& condition) {
  return testing::Eventually(condition, kPatience);
}

double SecondsSince(steady_clock::time_point begin) {
  return duration<double>(steady_clock::now() - begin).count();
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options),
        mirror_({.feed = "mirror",
                 .history = kExact,
                 .left_out = {kFleeting},
                 .may_evict = {kCache, kDatabase}},
                &findings_) {
    scene_.mirror = &mirror_;
    scene_.findings = &findings_;
  }

  SoakFigures Run() {
    findings_.AddStatus("the start", Begin());
    if (!findings_.any()) {
      BearLoad();
      const auto begin = steady_clock::now();
      CheckAtRest();
      figures_.check_seconds = SecondsSince(begin);
    }
    if (!findings_.any() && options_.load >= kLongLoad) FindWhatWasNotDone();
    figures_.findings = findings_.Texts();
    figures_.refusals = findings_.Refusals();
    return std::move(figures_);
  }

 private:
  // --- The start ---------------------------------------------------------------------------------

  Words Flags(const std::string& policy) const {
    return {fmt::format("--memory-limit={}", options_.memory_limit),
            fmt::format("--max-disk-bytes={}", options_.disk_limit),
            fmt::format("--maxmemory={}", options_.data_bytes),
            fmt::format("--replica-retention-bytes={}", options_.disk_limit / 16),
            fmt::format("--change-retention-bytes={}", options_.disk_limit / 16),
            "--maxmemory-policy=" + policy};
  }

  absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const std::string& name,
                                                       const std::string& policy) {
    auto server = std::make_unique<ServerProcess>(options_.server, options_.directory + "/" + name,
                                                  Flags(policy));
    if (server->port() != 0) return server;
    return absl::InternalError(fmt::format("the {} does not start: {}", name, server->log()));
  }

  absl::Status Begin() {
    constexpr std::string_view kOrders[] = {"lfu", "lru", "random"};
    const std::string policy = fmt::format("allkeys-{}", kOrders[options_.seed % 3]);
    const std::string cache_order(kOrders[options_.seed / 3 % 3]);
    VARVE_ASSIGN_OR_RETURN(primary_, Start("primary", policy));
    VARVE_ASSIGN_OR_RETURN(follower_, Start("follower", policy));
    scene_.primary = primary_->port();
    scene_.follower = follower_->port();
    VARVE_RETURN_IF_ERROR(mirror_.Open(scene_.primary));
    const Shares shares = Shares::Of(options_.data_bytes);
    const uint64_t kept = options_.disk_limit / 32;
    const Words made[] = {
        {kExact, "KEEPBYTES", fmt::to_string(kept)},
        {kZipped, "COMPRESS", "zstd", "SYNC", "everysec"},
        {kQuick, "COMPRESS", "lz4", "SYNC", "no"},
        {kCache, "MAXBYTES", fmt::to_string(shares.cache), "EVICT", cache_order, "SYNC", "no"},
        {kFleeting},
        {kProbe}};
    for (const Words& words : made) {
      Words request = {"NAMESPACE", "CREATE"};
      request.insert(request.end(), words.begin(), words.end());
      VARVE_RETURN_IF_ERROR(Ask(scene_.primary, request).status());
    }
    VARVE_RETURN_IF_ERROR(
        Ask(scene_.follower, {"REPLICAOF", "127.0.0.1", fmt::to_string(scene_.primary)}).status());
    if (!Comes([&] { return Info(scene_.follower, "master_link_status") == "up"; }))
      return absl::InternalError("the follower does not follow: " + follower_->log());
    return absl::OkStatus();
  }

  static absl::StatusOr<Reply> Ask(uint16_t port, const Words& words) {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                           Client::Connect(ClientOf(port, "")));
    return client->Call(std::vector<std::string_view>(words.begin(), words.end()));
  }

  // Returns the field of INFO; "" where it, or the server, is missing.
  static std::string Info(uint16_t port, const std::string& field) {
    const absl::StatusOr<Reply> reply = Ask(port, {"INFO", "everything"});
    if (!reply.ok()) return "";
    const size_t at = reply->text.find("\n" + field + ":");
    if (at == std::string::npos) return "";
    const size_t from = at + field.size() + 2;
    return reply->text.substr(from, reply->text.find('\r', from) - from);
  }

  static uint64_t InfoNumber(uint16_t port, const std::string& field) {
    uint64_t number = 0;
    return absl::SimpleAtoi(Info(port, field), &number) ? number : 0;
  }

  std::vector<WatchedServer> Watched() {
    const uint64_t memory = options_.memory_is_told ? options_.memory_limit : 0;
    return {{.name = "the primary",
             .process = primary_->process().id(),
             .directory = options_.directory + "/primary",
             .memory_limit = memory,
             .disk_limit = options_.disk_limit},
            {.name = "the follower",
             .process = follower_->process().id(),
             .directory = options_.directory + "/follower",
             .memory_limit = memory,
             .disk_limit = options_.disk_limit}};
  }

  // --- The load ----------------------------------------------------------------------------------

  // Waits until the time is over, or something is wrong.
  void AwaitEnd() {
    const absl::Time end = absl::Now() + absl::Seconds(options_.load.count());
    const absl::Time gives_up = options_.gives_up.count() == 0
                                    ? absl::InfiniteFuture()
                                    : absl::Now() + absl::Seconds(options_.gives_up.count());
    for (int looks = 0; absl::Now() < end && !findings_.any(); ++looks) {
      if (absl::Now() >= gives_up) findings_.Add(std::string(kGivenUp));
      if (looks % kLooksPerList == 0) NoteSilent();
      absl::SleepFor(absl::Milliseconds(100));
    }
  }

  // Notes how the servers describe clients that wait for long: it tells whether a request has
  // reached the server, and whether its reply waits for something.
  void NoteSilent() {
    for (const uint16_t port : {scene_.primary, scene_.follower}) {
      const absl::StatusOr<Reply> list = Ask(port, {"CLIENT", "LIST"});
      if (!list.ok()) continue;
      for (const absl::string_view line : absl::StrSplit(list->text, '\n')) {
        constexpr std::string_view kIdle = " idle=";
        const size_t at = line.find(kIdle.data());
        int idle = 0;
        if (at == absl::string_view::npos) continue;
        const absl::string_view rest = line.substr(at + kIdle.size());
        if (absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &idle) && idle >= kLongSilence)
          figures_.silent_clients.emplace_back(line);
      }
    }
    auto& silent = figures_.silent_clients;
    if (silent.size() > kMostSilent)
      silent.erase(silent.begin(), silent.end() - static_cast<ptrdiff_t>(kMostSilent));
  }

  void BearLoad() {
    load_.emplace(Shares::Of(options_.data_bytes), options_.seed, &scene_);
    copies_.emplace(options_.server, options_.client, options_.directory, &scene_);
    ResourceWatch watch(Watched(), &findings_);
    absl::Notification quiet;  // everything has been told
    findings_.AddStatus("the archive", copies_->Begin());
    std::thread mirror([&] { mirror_.Run(scene_.primary, quiet); });
    std::thread watcher([&] { watch.Run(quiet); });
    std::thread backups([&] {
      copies_->Run(absl::Seconds(std::clamp<int64_t>(options_.load.count() / 8, 1, 60)));
    });
    const auto begin = steady_clock::now();
    load_->Start();
    AwaitEnd();
    scene_.ended.Notify();
    load_->Join();
    backups.join();
    figures_.load_seconds = SecondsSince(begin);
    const bool is_good = !findings_.any();
    feed_has_ended_ = EndFeed();
    if (is_good && feed_has_ended_)
      findings_.AddStatus("the archive and the last backup", copies_->End());
    quiet.Notify();
    mirror.join();
    watcher.join();
    figures_.looks = watch.looks();
    figures_.peaks = watch.peaks();
    CheckGrowth(watch);
  }

  // Waits until readers of changes have everything, nothing is left that expires, and nothing is
  // evicted any more, which goes on while a directory is nearly full. Returns false, with a
  // finding, if it does not come to that. A load that ended because something is wrong ends here as
  // well, so that the checks behind it tell of nothing that follows from its end.
  bool EndFeed() {
    if (mirror_.has_ended()) return false;  // why is a finding already
    // A directory that is full has room again once merges are done.
    for (const Words& words : {Words{"CONFIG", "SET", "maxmemory-policy", "noeviction"},
                               Words{"NAMESPACE", "ALTER", kCache, "EVICT", "none"}}) {
      absl::Status status;
      if (Comes([&] { return (status = Ask(scene_.primary, words).status()).ok(); })) continue;
      findings_.AddStatus("the end of evictions", status);
      return false;
    }
    const char* const wrong = WhatDoesNotEnd();
    if (wrong != nullptr) findings_.Add(wrong);
    return wrong == nullptr;
  }

  // Returns null once what EndFeed() waits for is there.
  const char* WhatDoesNotEnd() {
    if (!Comes([&] { return HasRemovedExpired(); }))
      return "keys that should have expired are still there";
    const absl::StatusOr<Reply> now = Ask(scene_.primary, {"CHANGES", "NOW"});
    if (!now.ok()) return "the primary does not tell its version";
    if (!mirror_.AwaitVersion(now->elements[1].integer))
      return "the mirror does not come to the end of the feed";
    // A round of evictions that was under way may still come to its end.
    const bool is_told = Comes([&] {
      const FeedFigures told = mirror_.figures();
      return InfoNumber(scene_.primary, "evicted_keys") == told.evicted &&
             InfoNumber(scene_.primary, "expired_keys") == told.expired &&
             CompareWithFeed(scene_.primary).ok();
    });
    return is_told ? nullptr : "what the primary holds or counts is not what the feed tells";
  }

  // Returns whether no record that expires is left. Readers do not see what has expired, and it may
  // be removed long after that; a count removes it first.
  bool HasRemovedExpired() const {
    const absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect(ClientOf(scene_.primary, kFleeting));
    if (!client.ok()) return false;
    const absl::StatusOr<int64_t> left = (*client)->Count("-", "+");
    return left.ok() && *left == 0;
  }

  void CheckGrowth(const ResourceWatch& watch) {
    const std::vector<WatchedServer> servers = Watched();
    for (size_t i = 0; i < servers.size(); ++i) {
      const Usage& peak = watch.peaks()[i];
      const Usage& first = watch.firsts()[i];
      if (peak.threads > first.threads + kOtherThreads)
        findings_.Add(fmt::format("{} went from {} threads to {}", servers[i].name, first.threads,
                                  peak.threads));
    }
  }

  // --- The end -----------------------------------------------------------------------------------

  void CheckAtRest() {
    load_->Check(scene_.primary);
    findings_.AddStatus("the cache of a client", load_->tracking().Check(scene_.primary));
    findings_.AddStatus("the follower", CheckFollower());
    findings_.AddStatus("what INFO says", CheckErrors());
    if (feed_has_ended_) {
      load_->CheckFeed();
      findings_.AddStatus("the primary beside the feed", CompareWithFeed(scene_.primary));
      findings_.AddStatus("what INFO counts", CheckCounts());
    }
    CheckDescriptors();
    Count();
    if (findings_.any()) return;  // what was saved has the same
    findings_.AddStatus("what was saved", copies_->Check());
    figures_.copies = copies_->figures();
    Stop("follower", &follower_);
    Stop("primary", &primary_);
    findings_.AddStatus("the primary after a stop", CheckRestart());
  }

  absl::Status CompareWithFeed(uint16_t port) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> places, ReadPlaces(port));
    for (const std::string& place : places) {
      VARVE_ASSIGN_OR_RETURN(const uint64_t sum, ReadRecordSum(port, place));
      if (place != kFleeting && sum != mirror_.RecordsOf(place))
        return absl::DataLossError(place + " holds something else than the feed told");
    }
    return absl::OkStatus();
  }

  absl::Status CheckFollower() {
    if (!feed_has_ended_) return absl::OkStatus();  // the primary may not be there any more
    std::string mine, wanted;
    const bool has_all = Comes([&] {
      wanted = Info(scene_.primary, "master_repl_offset");
      mine = Info(scene_.follower, "slave_repl_offset");
      return mine == wanted && !mine.empty();
    });
    if (!has_all) return absl::InternalError(fmt::format("has version {} of {}", mine, wanted));
    VARVE_RETURN_IF_ERROR(CompareWithFeed(scene_.follower));
    load_->Check(scene_.follower);
    return absl::OkStatus();
  }

  absl::Status CheckCounts() {
    const FeedFigures feed = mirror_.figures();
    const uint64_t evicted = InfoNumber(scene_.primary, "evicted_keys");
    if (evicted != feed.evicted)
      return absl::InternalError(
          fmt::format("evicted_keys is {}, and the feed told {}", evicted, feed.evicted));
    const uint64_t expired = InfoNumber(scene_.primary, "expired_keys");
    if (expired != feed.expired)
      return absl::InternalError(
          fmt::format("expired_keys is {}, and the feed told {}", expired, feed.expired));
    return absl::OkStatus();
  }

  // Returns how many calls of the command were answered an error.
  static uint64_t FailedCalls(uint16_t port, const std::string& command) {
    constexpr std::string_view kField = "failed_calls=";
    const std::string figures = Info(port, "cmdstat_" + command);
    const size_t at = figures.find(kField);
    if (at == std::string::npos) return 0;
    const std::string number = figures.substr(at + kField.size());
    uint64_t calls = 0;
    return absl::SimpleAtoi(number.substr(0, number.find(',')), &calls) ? calls : 0;
  }

  // Returns the lines of commands of which a call was answered an error.
  static std::string FailedCommands(uint16_t port) {
    std::string failed;
    const absl::StatusOr<Reply> reply = Ask(port, {"INFO", "commandstats"});
    if (!reply.ok()) return failed;
    for (const absl::string_view line : absl::StrSplit(reply->text, "\r\n")) {
      if (line.find("failed_calls=") != absl::string_view::npos &&
          line.find("failed_calls=0") == absl::string_view::npos)
        failed.append(line.data(), line.size()).append("; ");
    }
    return failed;
  }

  // Returns how many replies may begin with ERR: a backup that is put off, and the first look at a
  // feed. What other requests are answered is a finding, whoever sends them.
  static uint64_t ExplainedErrors(uint16_t port) {
    return FailedCalls(port, "backup") + std::min(FailedCalls(port, "feed"), kFeedsMissed);
  }

  absl::Status CheckErrors() {
    for (const uint16_t port : {scene_.primary, scene_.follower}) {
      const std::string counted = Info(port, "errorstat_ERR");  // "count=3"
      uint64_t errors = 0;
      (void)absl::SimpleAtoi(counted.substr(counted.find('=') + 1), &errors);
      if (errors > ExplainedErrors(port))
        return absl::InternalError(fmt::format("{} replies were ERR, of which {} are explained: {}",
                                               errors, ExplainedErrors(port),
                                               FailedCommands(port)));
      VARVE_ASSIGN_OR_RETURN(const Reply reply, Ask(port, {"INFO", "errorstats"}));
      constexpr std::string_view kField = "errorstat_";
      for (size_t at = 0; (at = reply.text.find(kField, at)) != std::string::npos;) {
        at += kField.size();
        const std::string word = reply.text.substr(at, reply.text.find(':', at) - at);
        if (!ExpectedErrors().contains(word))
          return absl::InternalError("somebody was answered " + word);
      }
    }
    return absl::OkStatus();
  }

  // A server has its files open, and a few other things.
  void CheckDescriptors() {
    for (const WatchedServer& server : Watched()) {
      const Usage now = LookAt(server);
      const auto files = static_cast<uint64_t>(
          std::distance(std::filesystem::recursive_directory_iterator(server.directory),
                        std::filesystem::recursive_directory_iterator()));
      if (now.descriptors > files + kOtherDescriptors)
        findings_.Add(
            fmt::format("{} has {} descriptors and {} files", server.name, now.descriptors, files));
      figures_.lasts.push_back(now);
    }
  }

  void Stop(const std::string& name, std::unique_ptr<ServerProcess>* server) {
    (*server)->process().Kill(SIGTERM);
    if (const int code = (*server)->process().Wait(); code != 0)
      findings_.Add(fmt::format("the {} ended with {}: {}", name, code, (*server)->log()));
    const std::string output = options_.directory + "/verify.log";
    const int code =
        Process(options_.client, {"verify", options_.directory + "/" + name}, output).Wait();
    if (code != 0)
      findings_.Add(fmt::format("the store of the {}: {}", name, testing::ReadFile(output)));
  }

  absl::Status CheckRestart() {
    VARVE_ASSIGN_OR_RETURN(primary_, Start("primary", "noeviction"));
    VARVE_RETURN_IF_ERROR(CompareWithFeed(primary_->port()));
    load_->Check(primary_->port());
    return absl::OkStatus();
  }

  // A long load has done everything at least once.
  void FindWhatWasNotDone() {
    const std::pair<std::string_view, uint64_t> counts[] = {
        {"was evicted", figures_.feed.evicted},
        {"expired", figures_.feed.expired},
        {"was read of the past", figures_.past_reads},
        {"was read of the follower", figures_.follower_reads},
        {"was told to a cache", figures_.told_changes},
        {"was merged by COMPACT", figures_.merges},
        {"was branched", figures_.branches},
        {"was backed up", figures_.copies.full + figures_.copies.incremental},
        {"was restored", figures_.copies.restored}};
    for (const auto& [what, count] : counts) {
      if (count == 0) findings_.Add(fmt::format("nothing {}", what));
    }
  }

  void Count() {
    figures_.requests = load_->requests();
    figures_.oracle_checks = load_->oracle_checks();
    figures_.vanished = load_->vanished();
    figures_.past_reads = load_->past().reads();
    figures_.past_trimmed = load_->past().trimmed();
    figures_.follower_reads = load_->follower().reads();
    figures_.told_changes = load_->tracking().told();
    figures_.merges = load_->housekeeper().merges();
    figures_.branches = load_->housekeeper().branches();
    figures_.feed = mirror_.figures();
    figures_.copies = copies_->figures();
  }

  const SoakOptions options_;
  Findings findings_;
  Scene scene_;
  FeedMirror mirror_;
  std::unique_ptr<ServerProcess> primary_;
  std::unique_ptr<ServerProcess> follower_;
  std::optional<SavedCopies> copies_;
  std::optional<Load> load_;
  bool feed_has_ended_ = false;  // the mirror has been told everything
  SoakFigures figures_;
};

std::string UsageText(const std::string& name, const Usage& usage) {
  return fmt::format("{}: {:.0f} MiB resident, {:.0f} MiB on disk, {} descriptors, {} threads\n",
                     name, static_cast<double>(usage.resident) / (1 << 20),
                     static_cast<double>(usage.disk) / (1 << 20), usage.descriptors, usage.threads);
}

}  // namespace

SoakFigures RunSoak(const SoakOptions& options) { return Soak(options).Run(); }

std::string ReportOf(const SoakOptions& options, const SoakFigures& figures) {
  std::string text = fmt::format(
      "{:.0f} s of load (seed {}): {} requests of owners, {:.0f} a second; then {:.0f} s of "
      "checks\n",
      figures.load_seconds, options.seed, figures.requests,
      static_cast<double>(figures.requests) / std::max(figures.load_seconds, 0.001),
      figures.check_seconds);
  text +=
      fmt::format("data {} MiB, memory-limit {} MiB, max-disk-bytes {} MiB, looked at {} times\n",
                  options.data_bytes >> 20, options.memory_limit >> 20, options.disk_limit >> 20,
                  figures.looks);
  const char* const names[] = {"primary", "follower"};
  for (size_t i = 0; i < figures.peaks.size(); ++i)
    text += UsageText(fmt::format("at most, {}", names[i]), figures.peaks[i]);
  for (size_t i = 0; i < figures.lasts.size(); ++i)
    text += UsageText(fmt::format("at rest, {}", names[i]), figures.lasts[i]);
  text += fmt::format(
      "feed: {} commits of {} operations, {} at most in one; {} evicted, {} expired; {} "
      "connections\n",
      figures.feed.commits, figures.feed.operations, figures.feed.longest_commit,
      figures.feed.evicted, figures.feed.expired, figures.feed.connections);
  text += fmt::format(
      "{} checks of writers, {} evicted keys asked for, {} reads of the past ({} trimmed), {} of "
      "the follower\n",
      figures.oracle_checks, figures.vanished, figures.past_reads, figures.past_trimmed,
      figures.follower_reads);
  text += fmt::format(
      "{} changes told to a cache, {} COMPACT, {} branches; {} full and {} incremental backups "
      "({} put off), {} restores\n",
      figures.told_changes, figures.merges, figures.branches, figures.copies.full,
      figures.copies.incremental, figures.copies.put_off, figures.copies.restored);
  for (const auto& [word, count] : figures.refusals)
    text += fmt::format("refused with {}: {}\n", word, count);
  for (const std::string& finding : figures.findings) text += "WRONG: " + finding + "\n";
  if (!figures.good()) {
    for (const std::string& client : figures.silent_clients)
      text += fmt::format("silent for {} s or more: {}\n", kLongSilence, client);
  }
  return text + (figures.good() ? "All is well.\n" : "Something is wrong.\n");
}

}  // namespace varve::prove
