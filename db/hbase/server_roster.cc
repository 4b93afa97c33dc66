#include "db/hbase/server_roster.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

// A row is shown anew at least so often, so that it changes while its server lives.
constexpr int kShownPerTrust = 8;
constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{100};
constexpr std::chrono::milliseconds kLeastTime{100};

std::string EncodeSeen(const ServerRoster::Seen& seen) {
  std::string value;
  PutVarint64(&value, seen.catalog);
  PutVarint64(&value, seen.floor);
  return value;
}

// What makes no sense has seen nothing.
ServerRoster::Seen DecodeSeen(std::string_view value) {
  ServerRoster::Seen seen;
  ByteReader reader(value);
  if (!reader.ReadVarint64(&seen.catalog) || !reader.ReadVarint64(&seen.floor)) return {};
  return seen;
}

}  // namespace

ServerRoster::ServerRoster(HbaseContext* context, SystemRows* rows)
    : context_(context),
      rows_(rows),
      name_(fmt::format("{}{:08x}{:08x}", kServerRows, context->writer,
                        static_cast<uint32_t>(context->clock.NowMillis()))) {}

absl::Status ServerRoster::Beat(HbaseClient::Deadline deadline) {
  const absl::MutexLock lock(&beating_);
  SystemRows rows = rows_->Until(deadline);
  if (has_left_) return absl::FailedPreconditionError("the store is closed");
  const bool trusts = context_->spaces.IsTrusted();
  if (!trusts) VARVE_RETURN_IF_ERROR(Show(&rows, shown_));
  VARVE_RETURN_IF_ERROR(Look(&rows));
  const Seen seen{context_->spaces.version(), context_->clock.floor()};
  const bool is_new = seen.catalog != shown_.catalog || seen.floor != shown_.floor;
  const uint64_t age = context_->options.clock->MonotonicNanos() - shown_at_nanos_;
  if (trusts && !is_new && age < NanosOf(context_->options.trust) / kShownPerTrust)
    return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(Show(&rows, seen));
  context_->spaces.TrustUntil(shown_at_nanos_ + NanosOf(context_->options.trust));
  Watch(deadline).status().IgnoreError();  // what it would have seen, it sees later
  return absl::OkStatus();
}

absl::Status ServerRoster::Show(SystemRows* rows, const Seen& seen) {
  beating_.AssertHeld();
  const uint64_t begin = context_->options.clock->MonotonicNanos();
  VARVE_RETURN_IF_ERROR(rows->Put(name_, EncodeSeen(seen)));
  shown_ = seen;
  shown_at_nanos_ = begin;
  return absl::OkStatus();
}

absl::Status ServerRoster::Look(SystemRows* rows) {
  for (;;) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<SystemRow> read, rows->Read({kCatalogRow, kFloorRow}));
    const SystemRow& floor = read[1];
    if (floor.is_there) {
      uint64_t version = kNoSequence;
      if (!ByteReader(floor.value).ReadVarint64(&version))
        return absl::DataLossError(fmt::format("the floor of versions in table {} makes no sense",
                                               context_->options.table));
      context_->clock.RaiseFloor(version);
    }
    if (read[0].is_there) return ShowCatalog(read[0]);
    const absl::Status made =
        rows->Replace(kCatalogRow, read[0], SpaceCatalog::New().Encode()).status();
    if (!made.ok() && !absl::IsAborted(made)) return made;
  }
}

absl::Status ServerRoster::ShowCatalog(const SystemRow& row) {
  if (row.version == context_->spaces.version()) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(SpaceCatalog catalog, SpaceCatalog::Decode(row.value));
  context_->spaces.Show(std::move(catalog), row.version);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ServerRoster::Server>> ServerRoster::Watch(
    HbaseClient::Deadline deadline) {
  // A row is as it is since the end of a reading at the latest, and was at the beginning of one.
  const uint64_t begin = context_->options.clock->MonotonicNanos();
  VARVE_ASSIGN_OR_RETURN(auto rows, rows_->Until(deadline).List(kServerRows));
  const uint64_t end = context_->options.clock->MonotonicNanos();
  std::vector<Server> servers;
  std::set<std::string> there;
  const absl::MutexLock lock(&watching_);
  for (auto& [id, row] : rows) {
    there.insert(id);
    Row& watched = watched_.try_emplace(id, Row{row.identity, end}).first->second;
    if (watched.identity != row.identity) watched = {row.identity, end};
    const uint64_t silent = begin - std::min(begin, watched.since_nanos);
    servers.push_back({std::move(id), std::move(row), silent});
  }
  std::erase_if(watched_, [&](const auto& each) { return !there.contains(each.first); });
  return servers;
}

bool ServerRoster::IsDead(const Server& server) const {
  return server.silent_nanos >= NanosOf(context_->options.dead_after);
}

absl::StatusOr<std::optional<ServerRoster::Server>> ServerRoster::FindBehind(
    const Seen& seen, HbaseClient::Deadline deadline) {
  VARVE_ASSIGN_OR_RETURN(std::vector<Server> servers, Watch(deadline));
  for (Server& server : servers) {
    const Seen has = DecodeSeen(server.row.value);
    const bool is_behind = has.catalog < seen.catalog || has.floor < seen.floor;
    if (is_behind && !IsDead(server)) return std::optional(std::move(server));
  }
  return std::optional<Server>();
}

absl::StatusOr<bool> ServerRoster::HaveAllSeen(const Seen& seen) {
  VARVE_ASSIGN_OR_RETURN(const std::optional<Server> behind, FindBehind(seen));
  return !behind.has_value();
}

absl::Status ServerRoster::WaitForAll(const Seen& seen, HbaseClient::Deadline deadline) {
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    const absl::StatusOr<std::optional<Server>> behind = FindBehind(seen, deadline);
    if (behind.ok() && !behind->has_value()) return absl::OkStatus();
    if (!behind.ok() && !absl::IsUnavailable(behind.status())) return behind.status();
    if (context_->operations.IsClosed()) return IsBeingClosed();
    // A look has that much time, so that the last one tells who is behind.
    if (std::chrono::steady_clock::now() + pause + kLeastTime >= deadline) {
      if (!behind.ok()) return behind.status();
      const Server& server = **behind;
      return absl::DeadlineExceededError(fmt::format(
          "server {} has not confirmed it, and has shown nothing for {} ms; if it is gone, nobody "
          "waits for it once these are {} ms",
          server.id, server.silent_nanos / 1'000'000, context_->options.dead_after.count()));
    }
    std::this_thread::sleep_for(pause);
  }
}

absl::Status ServerRoster::RemoveDead() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<Server> servers, Watch());
  for (const Server& server : servers) {
    if (!IsDead(server)) continue;
    const absl::Status removed = rows_->Remove(std::string(kServerRows) + server.id, server.row);
    if (!removed.ok() && !absl::IsAborted(removed)) return removed;
  }
  return absl::OkStatus();
}

void ServerRoster::Leave() {
  const absl::MutexLock lock(&beating_);
  has_left_ = true;
  const absl::StatusOr<std::vector<SystemRow>> read = rows_->Read({name_});
  // A row that stays counts as that of a dead server later.
  if (read.ok() && read->front().is_there) rows_->Remove(name_, read->front()).IgnoreError();
}

}  // namespace varve
