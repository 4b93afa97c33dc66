#include "unit-tests/prove/soak/saved_copies.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/soak/key_owner.h"
#include "unit-tests/prove/soak/state_sum.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

namespace fs = std::filesystem;
using testing::Process;
using Words = std::vector<std::string>;

// One backup in so many fetches every file.
constexpr uint64_t kFullAfter = 4;
// How far the archive reaches back at least. The versions that are noted are some seconds apart,
// and the one that is asked for lies well within that time.
constexpr const char* kKeepFor = "2min";
constexpr absl::Duration kBetweenNotes = absl::Seconds(2);
constexpr size_t kNotes = 20;

// Returns the number behind the last words of that kind in the text.
absl::StatusOr<int64_t> VersionIn(const std::string& text, std::string_view words) {
  const size_t at = text.rfind(words);
  int64_t version = 0;
  if (at == std::string::npos) return absl::InternalError("no version in " + text);
  const size_t from = at + words.size();
  const std::string digits = text.substr(from, text.find_first_not_of("0123456789", from) - from);
  if (!absl::SimpleAtoi(digits, &version)) return absl::InternalError("no version in " + text);
  return version;
}

}  // namespace

SavedCopies::SavedCopies(std::string server, std::string client, std::string directory,
                         Scene* scene)
    : server_(std::move(server)),
      client_(std::move(client)),
      directory_(std::move(directory)),
      scene_(*scene) {}

absl::Status SavedCopies::Begin() {
  archiver_.emplace(client_,
                    Words{fmt::format("--port={}", scene_.primary), "archive",
                          directory_ + "/archive", "--interval=200ms", "--base-every=1min",
                          std::string("--keep=") + kKeepFor, "--feed-size=256MiB"},
                    directory_ + "/archive.log");
  const bool has_base = testing::Eventually(
      [&] {
        return absl::StrContains(testing::ReadFile(directory_ + "/archive/metrics.prom"),
                                 "varve_archive_bases_total 1");
      },
      kPatience);
  if (has_base) return absl::OkStatus();
  return absl::InternalError("the archive has no base: " +
                             testing::ReadFile(directory_ + "/archive.log"));
}

void SavedCopies::Run(absl::Duration pause) {
  absl::Time next = absl::Now() + pause;
  for (uint64_t turn = 0; !scene_.ended.WaitForNotificationWithTimeout(kBetweenNotes);) {
    noted_.push_back(scene_.mirror->Now().version);
    if (noted_.size() > kNotes) noted_.erase(noted_.begin());
    if (absl::Now() < next) continue;
    scene_.findings->AddStatus("a backup", TakeBackup(turn++ % kFullAfter != 0));
    next = absl::Now() + pause;
  }
}

absl::Status SavedCopies::TakeBackup(bool incremental) {
  Words words = {fmt::format("--port={}", scene_.primary), "backup", directory_ + "/backups",
                 "--keep=last=3", "--json"};
  if (incremental) words.emplace_back("--incremental");
  const absl::StatusOr<std::string> printed = Ask(std::move(words), "backup.log");
  const absl::string_view error = printed.status().message();
  if (absl::StrContains(error, "already in progress") ||
      absl::StrContains(error, "max-disk-bytes")) {
    ++figures_.put_off;
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(printed.status());
  VARVE_ASSIGN_OR_RETURN(const int64_t version, VersionIn(*printed, "\"version\":"));
  if (!scene_.mirror->AwaitVersion(version))
    return absl::InternalError(fmt::format("the feed does not come to version {}", version));
  backed_up_ = version;
  ++(incremental ? figures_.incremental : figures_.full);
  return absl::OkStatus();
}

absl::Status SavedCopies::End() {
  ended_ = scene_.mirror->Now().version;
  if (!archiver_->Running())
    return absl::InternalError("the archiver has ended: " +
                               testing::ReadFile(directory_ + "/archive.log"));
  archiver_->Kill(SIGTERM);
  if (const int code = archiver_->Wait(); code != 0)
    return absl::InternalError(fmt::format("the archiver ended with {}: {}", code,
                                           testing::ReadFile(directory_ + "/archive.log")));
  const std::string port = fmt::format("--port={}", scene_.primary);
  VARVE_RETURN_IF_ERROR(
      Ask({port, "archive", directory_ + "/archive", "--once"}, "archive_end.log").status());
  VARVE_RETURN_IF_ERROR(
      Ask({port, "archive-check", directory_ + "/archive"}, "archive_check.log").status());
  // The directory may be full, and has room again once merges are done.
  const uint64_t before = figures_.incremental;
  absl::Status status;
  testing::Eventually(
      [&] {
        status = TakeBackup(true);
        return !status.ok() || figures_.incremental > before;
      },
      kPatience);
  if (status.ok() && figures_.incremental == before)
    return absl::InternalError("there is no room for a backup");
  return status;
}

absl::Status SavedCopies::Check() {
  VARVE_RETURN_IF_ERROR(Ask({"verify", directory_ + "/backups"}, "verify_backups.log").status());
  VARVE_RETURN_IF_ERROR(Restore(directory_ + "/backups", {}, backed_up_));
  VARVE_RETURN_IF_ERROR(Restore(directory_ + "/archive", {}, ended_));
  if (noted_.empty()) return absl::InternalError("no version was noted for the archive");
  const int64_t earlier = noted_[noted_.size() / 2];
  return Restore(directory_ + "/archive", {fmt::format("--at-version={}", earlier)}, earlier);
}

absl::StatusOr<std::string> SavedCopies::Ask(Words words, const std::string& output) {
  const std::string file = directory_ + "/" + output;
  const int code = Process(client_, words, file).Wait();
  std::string printed = testing::ReadFile(file);
  if (code == 0) return printed;
  return absl::InternalError(
      fmt::format("client_main {} ended with {}: {}", fmt::join(words, " "), code, printed));
}

absl::Status SavedCopies::Restore(const std::string& from, const Words& options, int64_t least) {
  const std::string target = directory_ + "/restored";
  fs::remove_all(target);
  Words words = {"restore", from, target};
  words.insert(words.end(), options.begin(), options.end());
  VARVE_ASSIGN_OR_RETURN(const std::string printed, Ask(std::move(words), "restore.log"));
  VARVE_RETURN_IF_ERROR(Ask({"verify", target}, "verify_restored.log").status());
  VARVE_ASSIGN_OR_RETURN(const int64_t version, VersionIn(printed, " as of version "));
  const std::optional<StateAt> wanted = scene_.mirror->At(version);
  if (version < least || !wanted.has_value())
    return absl::DataLossError(
        fmt::format("{} came back as of version {}, and has {}", from, version, least));
  testing::ServerProcess server(server_, target, {"--memory-limit=128MiB"});
  if (server.port() == 0)
    return absl::InternalError("what came back does not start: " + server.log());
  VARVE_ASSIGN_OR_RETURN(const uint64_t sum, ReadStateSum(server.port(), {kFleeting}));
  if (sum != wanted->sum)
    return absl::DataLossError(
        fmt::format("what came back from {} is not what was there at version {}", from, version));
  ++figures_.restored;
  server.process().Kill(SIGKILL);
  server.process().Wait();
  fs::remove_all(target);
  return absl::OkStatus();
}

}  // namespace varve::prove
