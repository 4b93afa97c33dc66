// REPLICA: what a follower asks of its primary. The commands are for servers, and may change with
// the protocol's number.
//
//   REPLICA HELLO protocol format id port [host]  [protocol, format, id, store, history, newest,
//                                                  first retained, [upstream ids],
//                                                  [[history, end], ...]]
//   REPLICA PULL id since most-bytes block-ms     [newest, history, position, blocks]
//   REPLICA ACK id applied durable                [newest, [upstream ids]]
//   REPLICA COPY id                               [version, store, history, [[file, size], ...]]
//   REPLICA CHECKSUM id file                      XXH3-64 of the file
//   REPLICA FETCH id file offset length           bytes
//   REPLICA RELEASE id                            OK
//
// Ids of stores and histories are 16 hex digits. The files of a copy stay until the follower
// releases them, or until it has not asked for `backup-sealed-ttl`.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/replication/replica_protocol.h"
#include "type/version.h"
#include "util/base/file_checksum.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr size_t kMostPulled = size_t{8} << 20;
constexpr int64_t kLongestPull = 5'000;  // ms; a follower that is silent for long counts as gone
constexpr size_t kMostFollowers = 1000;
constexpr std::chrono::seconds kSilence{10};
constexpr uint64_t kReadTogether = uint64_t{1} << 20;

void ReplyNoNumber(CommandContext& context) { context.reply.Error(kNoInteger); }

void WriteUpstream(CommandContext& context) {
  const std::vector<std::string> upstream = context.server.replication.link().upstream;
  context.reply.Array(upstream.size());
  for (const std::string& id : upstream) context.reply.Bulk(id);
}

int64_t AsInteger(uint64_t number) { return static_cast<int64_t>(number); }

// Returns the host of an address with a port, as others connect to it.
std::string HostOf(const std::string& address) {
  std::string_view host = std::string_view(address).substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  constexpr std::string_view kMapped = "::ffff:";  // an address of IPv4
  if (host.starts_with(kMapped) && host.find('.') != std::string_view::npos)
    host.remove_prefix(kMapped.size());
  return std::string(host);
}

// Returns whether it may be the id of a server.
bool IsId(std::string_view id) {
  return id.size() == kReplicaIdSize && id.find_first_not_of("0123456789abcdef") == id.npos;
}

// --- HELLO ---------------------------------------------------------------------------------------

void Hello(CommandContext& context, Arguments arguments) {
  uint64_t protocol = 0, format = 0, port = 0;
  if (!ParseRespCount(arguments[2], &protocol) || !ParseRespCount(arguments[3], &format) ||
      !ParseRespCount(arguments[5], &port) || port > UINT16_MAX)
    return ReplyNoNumber(context);
  // A later version of Varve reads what this one writes, and not the other way round.
  if (protocol != kReplicaProtocol || format < kManifestFormatVersion) {
    return context.reply.Error(fmt::format(
        "REPLICAVERSION this server (varve {}) has replication protocol {} and store format {}, "
        "and the follower has {} and {}: upgrade the follower first, and its primary last",
        kVarveVersion, kReplicaProtocol, kManifestFormatVersion, protocol, format));
  }
  ServerState& server = context.server;
  const std::string id(arguments[4]);
  if (!IsId(id)) return context.reply.Error("ERR the id of a server is 40 hex digits");
  if (server.replication.followers.size() >= kMostFollowers)
    return context.reply.Error("ERR this server has too many followers");
  const std::vector<std::string> upstream = server.replication.link().upstream;
  if (id == server.replication.id() ||
      std::find(upstream.begin(), upstream.end(), id) != upstream.end()) {
    return context.reply.Error(
        "REPLICALOOP this server follows the server that wants to follow it: say REPLICAOF NO ONE "
        "to one of them");
  }
  ReplicatedStore* const store = ReplicationOf(server.store);
  if (store == nullptr) return context.reply.Error("ERR this store can't be replicated");
  const StoreIdentity identity = store->Identity();
  const Lineage lineage = server.calls.lineage();
  const std::string host(arguments.size() > 6 ? arguments[6] : std::string_view());
  server.replication.followers.Join(
      {.id = id,
       .address = host.empty() ? HostOf(context.client.address) : host,
       .port = static_cast<uint16_t>(port),
       .connected = std::chrono::steady_clock::now(),
       .told = std::chrono::steady_clock::now()});
  context.reply.Array(9);
  context.reply.Integer(kReplicaProtocol);
  context.reply.Integer(kManifestFormatVersion);
  context.reply.Bulk(server.replication.id());
  context.reply.Bulk(fmt::format("{:016x}", identity.store_id));
  context.reply.Bulk(fmt::format("{:016x}", identity.history_id));
  context.reply.Integer(AsInteger(identity.durable));
  context.reply.Integer(AsInteger(std::min<uint64_t>(identity.first_retained, INT64_MAX)));
  WriteUpstream(context);
  context.reply.Array(lineage.past.size());
  for (const HistoryEnd& past : lineage.past) {
    context.reply.Array(2);
    context.reply.Bulk(fmt::format("{:016x}", past.id));
    context.reply.Integer(AsInteger(past.end));
  }
}

// --- PULL ----------------------------------------------------------------------------------------

// The reply to PULL, which waits until there is something to send.
class PullStream final : public ReplyStream {
 public:
  PullStream(ChangeWaiters* waiters, std::string id, SequenceNumber since, size_t most_bytes,
             std::chrono::milliseconds block)
      : waiters_(*waiters),
        id_(std::move(id)),
        since_(since),
        most_bytes_(most_bytes),
        until_(std::chrono::steady_clock::now() + block) {
    waiters_.BeginDiskWait();  // a follower gets what is on disk
  }
  ~PullStream() override { waiters_.EndDiskWait(); }

  Progress Produce(CommandContext& context, size_t /*budget*/) override {
    ServerState& server = context.server;
    const uint64_t word = server.clients.changes.word();
    const absl::StatusOr<ReplicaFeeds::Piece> piece =
        server.for_followers.feeds.Next(id_, since_, most_bytes_);
    if (!piece.ok()) {
      ++server.replication.counts.partial_err;
      context.Fail(piece.status());
      return Progress::kDone;
    }
    const bool may_wait = piece->blocks.empty() && !context.in_transaction() &&
                          !server.draining.load(std::memory_order_relaxed);
    if (may_wait && std::chrono::steady_clock::now() < until_) {
      context.AwaitChanges({.word = word, .until = until_});
      return Progress::kMore;
    }
    const StoreIdentity identity = ReplicationOf(server.store)->Identity();
    context.reply.Array(4);
    context.reply.Integer(AsInteger(identity.durable));
    context.reply.Bulk(fmt::format("{:016x}", identity.history_id));
    context.reply.Integer(AsInteger(piece->position));
    context.reply.Bulk(piece->blocks);
    server.replication.followers.NoteSent(id_, piece->position);
    return Progress::kDone;
  }

 private:
  ChangeWaiters& waiters_;
  const std::string id_;
  const SequenceNumber since_;
  const size_t most_bytes_;
  const std::chrono::steady_clock::time_point until_;
};

void Pull(CommandContext& context, Arguments arguments) {
  uint64_t since = 0, most_bytes = 0, block = 0;
  if (!ParseRespCount(arguments[3], &since) || !ParseRespCount(arguments[4], &most_bytes) ||
      !ParseRespCount(arguments[5], &block))
    return ReplyNoNumber(context);
  ServerState& server = context.server;
  const std::string id(arguments[2]);
  bool is_new = false;
  if (!server.replication.followers.Begin(id, &is_new)) {
    return context.reply.Error(
        "NOTJOINED this server doesn't know the follower: say REPLICA HELLO");
  }
  if (is_new) ++server.replication.counts.partial_ok;
  if (const absl::Status retained = server.calls.retain_for_followers(); !retained.ok())
    return context.Fail(retained);
  context.Stream(std::make_unique<PullStream>(
      &server.clients.changes, id, since, std::min<size_t>(most_bytes, kMostPulled),
      std::chrono::milliseconds(std::min<uint64_t>(block, kLongestPull))));
}

// --- ACK -----------------------------------------------------------------------------------------

void Acknowledge(CommandContext& context, Arguments arguments) {
  uint64_t applied = 0, durable = 0;
  if (!ParseRespCount(arguments[3], &applied) || !ParseRespCount(arguments[4], &durable))
    return ReplyNoNumber(context);
  ServerState& server = context.server;
  // A follower has no more than this server has.
  const StoreIdentity identity = ReplicationOf(server.store)->Identity();
  if (!server.replication.followers.Note(
          std::string(arguments[2]), std::min(applied, identity.newest),
          std::min(durable, identity.durable), std::chrono::steady_clock::now()))
    return context.reply.Error(
        "NOTJOINED this server doesn't know the follower: say REPLICA HELLO");
  context.reply.Array(2);
  context.reply.Integer(AsInteger(identity.durable));
  WriteUpstream(context);
}

// --- COPY ----------------------------------------------------------------------------------------

absl::Status MakeCopy(ServerState& server, const std::string& id) {
  VARVE_RETURN_IF_ERROR(server.calls.retain_for_followers());
  if (!server.replication.followers.BeginCopy(id, std::chrono::steady_clock::now() - kSilence)) {
    return absl::FailedPreconditionError(
        "another follower takes a copy at present: try again once it has it");
  }
  // What is left of a copy before, also of this follower's own.
  VARVE_RETURN_IF_ERROR(server.for_followers.copies.Cleanup());
  VARVE_RETURN_IF_ERROR(server.for_followers.copies.Start());
  return server.for_followers.copies.Seal();
}

void Copy(CommandContext& context, Arguments arguments) {
  ServerState& server = context.server;
  const std::string id(arguments[2]);
  if (const absl::Status made = MakeCopy(server, id); !made.ok()) {
    server.replication.followers.EndCopy(id);
    return context.Fail(made);
  }
  ++server.replication.counts.full;
  const Checkpoint checkpoint = server.for_followers.copies.Report(/*is_use=*/true).checkpoint;
  context.reply.Array(4);
  context.reply.Integer(AsInteger(checkpoint.version));
  context.reply.Bulk(fmt::format("{:016x}", checkpoint.store_id));
  context.reply.Bulk(fmt::format("{:016x}", checkpoint.history_id));
  context.reply.Array(checkpoint.files.size());
  for (const CheckpointFile& file : checkpoint.files) {
    context.reply.Array(2);
    context.reply.Bulk(file.name);
    context.reply.Integer(AsInteger(file.size));
  }
}

void ReplyNoCopy(CommandContext& context) {
  context.reply.Error("NOTJOINED this follower takes no copy: say REPLICA COPY");
}

void Fetch(CommandContext& context, Arguments arguments) {
  uint64_t offset = 0, length = 0;
  if (!ParseRespCount(arguments[4], &offset) || !ParseRespCount(arguments[5], &length))
    return ReplyNoNumber(context);
  if (length > BackupService::kLongestFetch) {
    return context.reply.Error(
        fmt::format("ERR at most {} bytes are fetched at once", BackupService::kLongestFetch));
  }
  const std::string id(arguments[2]);
  if (!context.server.replication.followers.Copies(id, std::chrono::steady_clock::now()))
    return ReplyNoCopy(context);
  const absl::StatusOr<std::string> bytes =
      context.server.for_followers.copies.Fetch(arguments[3], offset, length);
  bytes.ok() ? context.reply.Bulk(*bytes) : context.Fail(bytes.status());
}

void ReplyChecksum(CommandContext& context, Arguments arguments) {
  ServerState& server = context.server;
  const std::string id(arguments[2]);
  if (!server.replication.followers.Copies(id, std::chrono::steady_clock::now()))
    return ReplyNoCopy(context);
  FileChecksum checksum;
  for (uint64_t offset = 0;;) {
    const absl::StatusOr<std::string> bytes =
        server.for_followers.copies.Fetch(arguments[3], offset, kReadTogether);
    if (!bytes.ok()) return context.Fail(bytes.status());
    if (bytes->empty()) break;
    checksum.Add(*bytes);
    offset += bytes->size();
  }
  context.reply.Bulk(fmt::format("{:016x}", checksum.value()));
}

void Release(CommandContext& context, Arguments arguments) {
  const std::string id(arguments[2]);
  if (context.server.replication.followers.Copies(id, std::chrono::steady_clock::now())) {
    const absl::Status removed = context.server.for_followers.copies.Cleanup();
    context.server.replication.followers.EndCopy(id);
    if (!removed.ok()) return context.Fail(removed);
  }
  context.reply.Ok();
}

void HandleReplica(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "hello") return Hello(context, arguments);
  if (what == "pull") return Pull(context, arguments);
  if (what == "ack") return Acknowledge(context, arguments);
  if (what == "copy") return Copy(context, arguments);
  if (what == "checksum") return ReplyChecksum(context, arguments);
  if (what == "fetch") return Fetch(context, arguments);
  return Release(context, arguments);
}

constexpr Command kReplicaRows[] = {
    {.name = "replica",
     .arity = -2,
     .flags = kContainerCommand | kAdminCommand | kSlowCommand,
     .handler = HandleReplica,
     .group = "server",
     .summary = "What a follower asks of its primary.",
     .syntax = "ACK | CHECKSUM | COPY | FETCH | HELLO | PULL | RELEASE | HELP"},
};

}  // namespace

absl::Span<const Command> ReplicaCommands() { return kReplicaRows; }

}  // namespace varve
