#include "server/following/following.h"

#include <random>
#include <utility>

#include "fmt/format.h"
#include "server/following/incoming_store.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"
#include "varve/checkpoint.h"

namespace varve {
namespace {

uint64_t NewHistoryId() {
  std::random_device random;
  uint64_t id = 0;
  while (id == 0) id = (uint64_t{random()} << 32) | random();
  return id;
}

// A primary answers a follower a few times a second.
constexpr std::chrono::seconds kPatience{3};

// A server shows its primary the certificate that it shows its clients, and trusts the same
// authorities.
ClientTlsOptions TlsToPrimary(const TlsOptions& options) {
  return {.enabled = true,
          .ca_file = options.ca_file,
          .ca_directory = options.ca_directory,
          .certificate_file = options.certificate_file,
          .key_file = options.key_file};
}

// Returns where a copy of the primary's store is made: what the bound of the disk counts. The
// replication file is written elsewhere: it is small, and a promotion must not fail for want of
// room.
FileSystem* FilesOfCopies(const ServerState& server) { return BoundedOrPlain(server.disk); }

// Shows what the link to a Redis does as the report of any link.
void Show(const RedisLinkStatus& status, LinkReport* report) {
  if (report->phase == LinkPhase::kConnected && !status.up)
    report->down_since = std::chrono::steady_clock::now();
  report->is_redis = true;
  report->phase = status.up        ? LinkPhase::kConnected
                  : status.syncing ? LinkPhase::kSync
                                   : LinkPhase::kConnect;
  report->error = status.error;
  report->last_io = status.last_io;
  report->copied_bytes = status.bytes_done;
  report->copy_bytes = status.bytes_total;
  report->redis_id = status.replid;
  report->redis_offset = status.offset;
  report->skipped = status.skipped;
  report->skipped_names = status.skipped_names;
}

}  // namespace

Following::Following(ServerState* server) : server_(*server), store_(ReplicationOf(server->store)) {
  server_.replication.OnReport([this](LinkReport* report) { CompleteReport(report); });
}

Following::~Following() { Stop(); }

// --- The file ------------------------------------------------------------------------------------

absl::Status Following::Write(ReplicationRecord record) {
  record.id = server_.replication.id();
  if (record == record_) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(WriteReplicationFile(PosixFileSystem(), directory_, record));
  record_ = std::move(record);
  return absl::OkStatus();
}

absl::Status Following::MatchHistory() {
  if (record_.lineage.current == 0 || record_.lineage.current == store_->Identity().history_id)
    return absl::OkStatus();
  return store_->SetHistoryId(record_.lineage.current);
}

absl::Status Following::Load() {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<std::string> directory = StoreDirectory(*server_.store);
  if (store_ == nullptr || !directory.ok()) return absl::OkStatus();
  directory_ = *directory;
  PrimaryAddress primary;
  {
    absl::MutexLock record_lock(&record_mutex_);
    VARVE_ASSIGN_OR_RETURN(record_, ReadReplicationFile(PosixFileSystem(), directory_));
    VARVE_RETURN_IF_ERROR(MatchHistory());
    // A follower that is started again is the same one to its primary.
    if (!record_.id.empty()) server_.replication.SetId(record_.id);
    server_.replication.counts.diverged.store(record_.diverged);
    primary =
        record_.primary.value_or(ParsePrimaryAddress(server_.configuration.replication().primary));
    if (record_.retains) {
      VARVE_RETURN_IF_ERROR(
          store_->RetainForFollowers(server_.configuration.replication().retention_bytes));
      retains_.store(true);
    }
  }
  if (primary.named()) store_->SetFollowing(true);
  server_.replication.SetPrimary(primary);
  server_.configuration.NotePrimary(PrimaryText(primary));
  return absl::OkStatus();
}

Lineage Following::GetLineage() const {
  if (store_ == nullptr) return {};
  absl::MutexLock lock(&record_mutex_);
  const StoreIdentity identity = store_->Identity();
  Lineage lineage = record_.lineage;
  lineage.current = identity.history_id;
  lineage.newest = identity.newest;
  return lineage;
}

absl::Status Following::RetainForFollowers() {
  if (retains_.load()) return absl::OkStatus();
  if (store_ == nullptr) return absl::UnimplementedError("this store can't be replicated");
  absl::MutexLock lock(&record_mutex_);
  if (retains_.load()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(
      store_->RetainForFollowers(server_.configuration.replication().retention_bytes));
  ReplicationRecord record = record_;
  record.retains = true;
  VARVE_RETURN_IF_ERROR(Write(record));
  retains_.store(true);
  return absl::OkStatus();
}

absl::Status Following::Adopt(const Lineage& lineage) {
  {
    absl::MutexLock lock(&record_mutex_);
    ReplicationRecord record = record_;
    record.lineage = lineage;
    record.lineage.newest = kNoSequence;
    VARVE_RETURN_IF_ERROR(Write(record));
    VARVE_RETURN_IF_ERROR(MatchHistory());
  }
  // All that this store has is the primary's, too: nobody has to wait for that any more.
  server_.ApplySyncReplicas(/*begins=*/false);
  // For the followers that it has once it is a primary.
  return RetainForFollowers();
}

// --- Links ---------------------------------------------------------------------------------------

ClientOptions Following::ConnectionTo(const PrimaryAddress& primary) const {
  const ReplicationOptions options = server_.configuration.replication();
  ClientOptions connection;
  connection.host = primary.host;
  connection.port = primary.port;
  connection.user = options.user;
  connection.password = options.password;
  connection.name = "varve-follow";
  connection.connect_timeout = connection.timeout = kPatience;
  connection.reconnect_for = std::chrono::milliseconds(0);
  if (options.tls) connection.tls = TlsToPrimary(server_.options.tls);
  return connection;
}

absl::Status Following::Start(uint16_t port) {
  absl::MutexLock lock(&mutex_);
  port_ = port;
  running_ = true;
  return server_.replication.follows() ? StartLink() : absl::OkStatus();
}

void Following::Stop() {
  absl::MutexLock lock(&mutex_);
  running_ = false;
  EndLinks();
}

void Following::EndLinks() {
  link_ = nullptr;                   // its thread may start the other one
  std::unique_ptr<RedisLink> redis;  // whose thread may wait for the lock
  {
    absl::MutexLock lock(&redis_mutex_);
    redis = std::move(redis_);
  }
}

absl::Status Following::StartLink() {
  const PrimaryAddress primary = server_.replication.primary();
  const ReplicationOptions options = server_.configuration.replication();
  link_ = std::make_unique<VarveLink>(VarveLinkParts{
      .server = &server_,
      .file_system = FilesOfCopies(server_),
      .directory = directory_,
      .connection = [this, primary] { return ConnectionTo(primary); },
      .port = options.announced_port != 0 ? options.announced_port : port_,
      .announced_host = options.announced_host,
      .adopt = [this](const Lineage& lineage) { return Adopt(lineage); },
      .record_of_copy =
          [this, primary](const Lineage& lineage) {
            return ReplicationRecord{.id = server_.replication.id(),
                                     .primary = primary,
                                     .retains = true,
                                     .diverged = server_.replication.counts.diverged.load(),
                                     .lineage = lineage};
          },
      .is_redis = [this] { NoteRedis(StartRedisLink()); }});
  return link_->Start();
}

absl::Status Following::StartRedisLink() {
  const PrimaryAddress primary = server_.replication.primary();
  const ClientOptions connection = ConnectionTo(primary);
  if (server_.live.sync_replicas.load() > 0) {
    return absl::FailedPreconditionError(
        "the primary is a Redis, which takes sync-replicas 0: what clients wrote before and nobody "
        "has acknowledged would count as written. Set it, and say REPLICAOF again");
  }
  // What comes from a Redis is no other server's history.
  VARVE_RETURN_IF_ERROR(Fork(primary));
  // Redis knows nothing of versions: what it sends is written as clients' writes are.
  store_->SetFollowing(false);
  absl::MutexLock lock(&redis_mutex_);
  redis_ = std::make_unique<RedisLink>(&server_,
                                       RedisPrimary{.host = primary.host,
                                                    .port = primary.port,
                                                    .user = connection.user,
                                                    .password = connection.password,
                                                    .tls = connection.tls,
                                                    .own_port = port_},
                                       [this] { ShowRedis(); });
  server_.replication.UpdateLink([](LinkReport& report) { report.is_redis = true; });
  return redis_->Start();
}

void Following::NoteRedis(const absl::Status& started) {
  if (started.ok()) return;
  const std::string error(started.message());
  spdlog::error("{}", error);
  server_.replication.UpdateLink([&](LinkReport& report) { report.error = error; });
}

void Following::CompleteReport(LinkReport* report) {
  absl::MutexLock lock(&redis_mutex_);
  if (redis_ != nullptr) Show(redis_->Status(), report);
}

void Following::ShowRedis() {
  LinkReport report = server_.replication.link();
  server_.replication.UpdateLink([&](LinkReport& shown) { shown = report; });
}

absl::Status Following::Follow(const PrimaryAddress& primary) {
  if (store_ == nullptr || directory_.empty())
    return absl::UnimplementedError("this server's store can't follow another one");
  absl::MutexLock lock(&mutex_);
  if (server_.replication.failover.load() == FailoverPhase::kWaitsForSync)
    return absl::FailedPreconditionError("REPLICAOF not allowed while failing over.");
  EndLinks();
  // A copy that came to its end at this moment is not wanted any more.
  IncomingStore(FilesOfCopies(server_), directory_).Abandon();
  absl::Status changed = primary.named() ? BeginToFollow(primary) : Promote();
  // After an error the server is what it was.
  if (!changed.ok() && running_ && server_.replication.follows()) StartLink().IgnoreError();
  return changed;
}

absl::Status Following::BeginToFollow(const PrimaryAddress& primary) {
  {
    absl::MutexLock record_lock(&record_mutex_);
    ReplicationRecord record = record_;
    record.primary = primary;
    VARVE_RETURN_IF_ERROR(Write(record));
  }
  // Replies that wait for followers go on waiting until the link knows that the new primary has
  // what they wrote.
  server_.replication.SetPrimary(primary);
  server_.configuration.NotePrimary(PrimaryText(primary));
  store_->SetFollowing(true);
  return running_ ? StartLink() : absl::OkStatus();
}

absl::Status Following::Fork(const PrimaryAddress& primary) {
  VARVE_RETURN_IF_ERROR(server_.store->Sync());
  absl::MutexLock lock(&record_mutex_);
  ReplicationRecord record = record_;
  record.primary = primary;
  const StoreIdentity identity = store_->Identity();
  record.lineage.current = identity.history_id;
  record.lineage.newest = identity.newest;
  record.lineage = Promoted(record.lineage, NewHistoryId());
  record.lineage.newest = kNoSequence;
  VARVE_RETURN_IF_ERROR(Write(record));
  return MatchHistory();
}

absl::Status Following::Promote() {
  const bool is_new = server_.replication.follows();
  if (is_new) VARVE_RETURN_IF_ERROR(Fork(PrimaryAddress()));
  // In this order: the first write that the store takes waits for followers already.
  server_.replication.SetPrimary({});
  server_.configuration.NotePrimary("");
  server_.ApplySyncReplicas(/*begins=*/true);
  store_->SetFollowing(false);
  if (is_new) {
    spdlog::info("This server is a primary now, from version {} on", store_->Identity().newest);
  }
  server_.clients.changes.Wake();
  return absl::OkStatus();
}

}  // namespace varve
