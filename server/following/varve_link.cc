#include "server/following/varve_link.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "client/reply_status.h"
#include "fmt/format.h"
#include "server/following/diverged_file.h"
#include "server/following/incoming_store.h"
#include "server/following/store_copy.h"
#include "server/following/told_changes.h"
#include "server/replication/replica_protocol.h"
#include "spdlog/spdlog.h"
#include "type/version.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"
#include "varve/history_status.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
// The primary answers within this time where nothing happens.
constexpr std::string_view kBlock = "250", kNoBlock = "0";  // ms
constexpr std::string_view kPulled = "1048576";
constexpr absl::Duration kBetweenAcks = absl::Seconds(1);
// The primary makes the files of a copy before it answers.
constexpr std::chrono::seconds kPatienceWithCopies{60};

// The status of a link whose primary is no Varve.
absl::Status IsRedis() { return absl::UnimplementedError("the primary is a Redis"); }

std::string HexOf(uint64_t id) { return fmt::format("{:016x}", id); }

}  // namespace

VarveLink::VarveLink(VarveLinkParts parts)
    : parts_(std::move(parts)),
      server_(*parts_.server),
      store_(*ReplicationOf(server_.store)),
      backoff_(kFirstPause, kLongestPause) {}

VarveLink::~VarveLink() { Stop(); }

absl::Status VarveLink::Start() {
  listener_ = server_.store->AddDurabilityListener([this] {
    absl::MutexLock lock(&mutex_);
    ++progress_;
    changed_.SignalAll();
  });
  try {
    puller_ = std::thread([this] {
      NameThread("varve-follow");
      Run();
    });
    acknowledger_ = std::thread([this] {
      NameThread("varve-ack");
      Acknowledge();
    });
  } catch (const std::system_error& failed) {
    Stop();
    return absl::ResourceExhaustedError(
        fmt::format("the system gives no thread to follow a primary: {}", failed.what()));
  }
  return absl::OkStatus();
}

void VarveLink::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_.store(true);
    changed_.SignalAll();
  }
  if (puller_.joinable()) puller_.join();
  if (acknowledger_.joinable()) acknowledger_.join();
  if (server_.replication.link_is_up()) Note(LinkPhase::kConnect);
  if (listener_ != 0) server_.store->RemoveDurabilityListener(std::exchange(listener_, 0));
}

void VarveLink::Pause(std::chrono::milliseconds pause) {
  const SteadyTime until = SteadyNow() + pause;
  absl::MutexLock lock(&mutex_);
  while (!stop_.load() && SteadyNow() < until) changed_.WaitWithDeadline(&mutex_, until);
}

void VarveLink::Note(LinkPhase phase) {
  server_.replication.UpdateLink([&](LinkReport& report) {
    if (report.phase == LinkPhase::kConnected && phase != LinkPhase::kConnected)
      report.down_since = SteadyNow();
    report.phase = phase;
    if (phase == LinkPhase::kConnected) report.error.clear();
  });
  server_.clients.changes.Wake();
}

void VarveLink::Run() {
  while (!stop_.load()) {
    const absl::Status ended = Follow();
    follows_.store(false);
    client_ = nullptr;
    if (stop_.load()) break;
    if (absl::IsUnimplemented(ended)) return parts_.is_redis();
    Note(LinkPhase::kConnect);
    const std::string error(ended.message());
    server_.replication.UpdateLink([&](LinkReport& report) { report.error = error; });
    if (std::exchange(said_, error) != error)
      spdlog::warn("The link to the primary is down: {}", error);
    Pause(backoff_.Next());
  }
}

// --- Finding out ---------------------------------------------------------------------------------

absl::StatusOr<PrimaryHello> VarveLink::SayHello() {
  const absl::StatusOr<Reply> reply =
      client_->Call({{"REPLICA", "HELLO", fmt::to_string(kReplicaProtocol),
                      fmt::to_string(kManifestFormatVersion), server_.replication.id(),
                      fmt::to_string(parts_.port)}},
                    WhenLost::kReport);
  if (!reply.ok() && absl::StrContains(reply.status().message(), "unknown command"))
    return IsRedis();
  VARVE_RETURN_IF_ERROR(reply.status());
  VARVE_ASSIGN_OR_RETURN(PrimaryHello hello, ParseHello(*reply));
  std::vector<std::string> upstream = hello.upstream;
  upstream.insert(upstream.begin(), hello.id);
  if (std::find(upstream.begin(), upstream.end(), server_.replication.id()) != upstream.end()) {
    return absl::FailedPreconditionError(
        "the primary follows this server: say REPLICAOF NO ONE to one of them");
  }
  server_.replication.UpdateLink([&](LinkReport& report) {
    report.upstream = upstream;
    report.primary_version = hello.lineage.newest;
    report.last_io = SteadyNow();
  });
  return hello;
}

absl::StatusOr<bool> VarveLink::IsEmpty() const {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, server_.store->Namespaces());
  for (const NamespaceDescription& space : list.namespaces) {
    if (!space.name.empty()) return false;
    VARVE_ASSIGN_OR_RETURN(const CountResult count,
                           server_.store->Count({.space = space.id}, {}, {}));
    if (count.keys != 0) return false;
  }
  return true;
}

absl::StatusOr<VarveLink::Next> VarveLink::Prepare(const PrimaryHello& hello) {
  Lineage own = server_.calls.lineage();
  const StoreIdentity identity = store_.Identity();
  const std::optional<SequenceNumber> common =
      identity.store_id == hello.store_id ? CommonVersion(own, hello.lineage) : std::nullopt;
  if (!common) {
    VARVE_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty());
    if (is_empty) return Next::kCopy;
    return absl::FailedPreconditionError(fmt::format(
        "this server's store, {}, has data of its own and nothing in common with the store {} of "
        "the primary, so it does not follow: nothing is thrown away. Export what is wanted, "
        "FLUSHALL "
        "and drop all named namespaces, and it takes a copy; or say REPLICAOF NO ONE",
        HexOf(identity.store_id), HexOf(hello.store_id)));
  }
  if (*common < identity.newest) {
    VARVE_RETURN_IF_ERROR(SaveDiverged(*common));
    return Next::kCopy;
  }
  if (identity.newest < hello.first_retained) {
    spdlog::warn(
        "The primary retains changes behind version {} alone, and this store has come to {}: it "
        "takes a copy",
        hello.first_retained, identity.newest);
    return Next::kCopy;
  }
  VARVE_RETURN_IF_ERROR(parts_.adopt(hello.lineage));
  return Next::kFollow;
}

absl::Status VarveLink::SaveDiverged(SequenceNumber fork) {
  VARVE_RETURN_IF_ERROR(server_.store->Sync());
  const absl::StatusOr<DivergedFile> saved = WriteDivergedFile(
      parts_.file_system, parts_.directory, &store_, server_.calls.lineage().current, fork);
  if (!saved.ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "this store went on behind version {}, where the primary's history forks, and these "
        "versions can't be written to a file ({}): nothing is thrown away, and it does not follow. "
        "Take a backup, and begin with an empty directory",
        fork, std::string(saved.status().message())));
  }
  // The same commits again, where the copy after them failed, count once.
  if (std::exchange(saved_fork_, fork) != fork)
    server_.replication.counts.diverged += saved->operations;
  if (saved->operations != 0) {
    spdlog::warn(
        "This server was a primary and went on behind version {}, where the present primary's "
        "history forks: {} commits with {} operations that no other server has are in {}",
        fork, saved->commits, saved->operations, saved->path);
  }
  return absl::OkStatus();
}

absl::Status VarveLink::Follow() {
  Note(LinkPhase::kConnecting);
  VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(parts_.connection()));
  VARVE_ASSIGN_OR_RETURN(const PrimaryHello hello, SayHello());
  VARVE_ASSIGN_OR_RETURN(const Next next, Prepare(hello));
  if (next == Next::kCopy) return TakeCopy(hello);
  const absl::Status ended = PullChanges(hello);
  // The store has to be copied anew where changes alone do not lead on.
  if (!FirstOfTrimmed(ended) && !absl::IsFailedPrecondition(ended) && !absl::IsDataLoss(ended))
    return ended;
  spdlog::warn("This follower can't go on from where it is, and takes a copy: {}",
               std::string(ended.message()));
  VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(parts_.connection()));
  VARVE_ASSIGN_OR_RETURN(const PrimaryHello again, SayHello());
  return TakeCopy(again);
}

// --- Following -----------------------------------------------------------------------------------

absl::Status VarveLink::PullChanges(const PrimaryHello& hello) {
  SequenceNumber position = store_.Identity().newest;
  const std::string& id = server_.replication.id();
  const auto ask = [&](SequenceNumber since, std::string_view block) {
    return client_->Send({{"REPLICA", "PULL", id, fmt::to_string(since), kPulled, block}});
  };
  VARVE_RETURN_IF_ERROR(ask(position, kNoBlock));
  for (bool is_first = true; !stop_.load(); is_first = false) {
    VARVE_ASSIGN_OR_RETURN(Reply reply, client_->Receive());
    if (reply.is_error() && reply.text.starts_with("TRIMMED"))
      return absl::FailedPreconditionError("the primary retains too little: " + reply.text);
    if (reply.is_error()) return absl::UnavailableError(reply.text);
    VARVE_ASSIGN_OR_RETURN(const PulledChanges pulled, ParsePull(std::move(reply)));
    if (pulled.history_id != hello.lineage.current)
      return absl::AbortedError("the primary's history forked: it was promoted");
    // The primary reads on while this store commits.
    VARVE_RETURN_IF_ERROR(ask(pulled.position, kBlock));
    if (is_first) {
      backoff_.Reset();
      said_.clear();
      follows_.store(true);
      Note(LinkPhase::kConnected);
      spdlog::info("Following the primary from version {}", position);
    }
    if (!pulled.blocks.empty()) {
      const absl::Status applied = store_.ApplyReplicated(pulled.blocks);
      // After an error, too: a part of it may have been committed.
      TellOfReplicated(server_, pulled.blocks);
      VARVE_RETURN_IF_ERROR(applied);
      VARVE_RETURN_IF_ERROR(server_.store->Push());
      VARVE_RETURN_IF_ERROR(server_.store->PushUnsynced());
    }
    position = pulled.position;
    server_.replication.UpdateLink([&](LinkReport& report) {
      report.last_io = SteadyNow();
      report.primary_version = std::max(report.primary_version, pulled.newest);
    });
    server_.clients.changes.Wake();
  }
  return absl::CancelledError("the link was ended");
}

void VarveLink::Acknowledge() {
  std::unique_ptr<Client> client;
  while (!stop_.load()) {
    if (!follows_.load()) {
      client = nullptr;
      Pause(kFirstPause);
      continue;
    }
    absl::Status status;
    if (client == nullptr) {
      absl::StatusOr<std::unique_ptr<Client>> connected = Client::Connect(parts_.connection());
      status = connected.status();
      if (connected.ok()) client = *std::move(connected);
    }
    if (status.ok()) status = AcknowledgeOver(client.get());
    if (status.ok()) continue;
    client = nullptr;
    Pause(kFirstPause);
  }
}

absl::Status VarveLink::AcknowledgeOver(Client* client) {
  uint64_t seen = 0;
  {
    absl::MutexLock lock(&mutex_);
    seen = progress_;
  }
  const StoreIdentity identity = store_.Identity();
  VARVE_ASSIGN_OR_RETURN(
      const Reply reply,
      client->Call({{"REPLICA", "ACK", server_.replication.id(), fmt::to_string(identity.newest),
                     fmt::to_string(identity.durable)}},
                   WhenLost::kReport));
  VARVE_ASSIGN_OR_RETURN(const AckAnswer answer, ParseAck(reply));
  server_.replication.UpdateLink([&](LinkReport& report) {
    report.primary_version = std::max(report.primary_version, answer.newest);
    if (!report.upstream.empty()) report.upstream.resize(1);
    report.upstream.insert(report.upstream.end(), answer.upstream.begin(), answer.upstream.end());
  });
  const SteadyTime until = SteadyNow() + kBetweenAcks;
  absl::MutexLock lock(&mutex_);
  while (progress_ == seen && !stop_.load() && SteadyNow() < until)
    changed_.WaitWithDeadline(&mutex_, until);
  return absl::OkStatus();
}

// --- Copying -------------------------------------------------------------------------------------

absl::Status VarveLink::TakeCopy(const PrimaryHello& hello) {
  if (!server_.restart) {
    return absl::FailedPreconditionError(
        "this follower has to take a copy of the primary's store, which takes a server program "
        "that can begin anew with it");
  }
  Note(LinkPhase::kSync);
  spdlog::info("Taking a copy of the primary's store");
  ClientOptions patient = parts_.connection();
  patient.timeout = kPatienceWithCopies;
  VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(patient));
  IncomingStore incoming(parts_.file_system, parts_.directory);
  VARVE_ASSIGN_OR_RETURN(const StoreCopied copied,
                         CopyStore(client_.get(),
                                   {.file_system = parts_.file_system,
                                    .store = parts_.directory,
                                    .id = server_.replication.id(),
                                    .stop = &stop_,
                                    .progress =
                                        [this](uint64_t done, uint64_t total) {
                                          server_.replication.UpdateLink([&](LinkReport& report) {
                                            report.copied_bytes = done;
                                            report.copy_bytes = total;
                                            report.last_io = SteadyNow();
                                          });
                                        }},
                                   &incoming));
  if (copied.copy.history_id != hello.lineage.current) {
    incoming.Abandon();
    return absl::AbortedError("the primary's history forked: it was promoted");
  }
  absl::Status sealed = incoming.Seal(parts_.record_of_copy(hello.lineage));
  // Whoever ends the link meanwhile wants the store as it is.
  if (sealed.ok() && stop_.load()) sealed = absl::CancelledError("the link was ended");
  if (!sealed.ok()) {
    incoming.Abandon();
    return sealed;
  }
  spdlog::info(
      "The copy of the primary's store, as of version {}, is complete: {} bytes were sent, {} were "
      "here. The server begins anew with it",
      copied.copy.version, copied.sent_bytes, copied.shared_bytes);
  server_.restart();
  // The program stops the server, and this link with it.
  while (!stop_.load()) Pause(kLongestPause);
  return absl::CancelledError("the link was ended");
}

}  // namespace varve
