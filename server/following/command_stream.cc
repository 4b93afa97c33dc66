#include "server/following/command_stream.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/access/acl_rules.h"
#include "server/clients/client_modes.h"
#include "server/commands/command_table.h"
#include "server/following/reply_errors.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kMaxRequests = 1024;   // of a batch
constexpr size_t kMaxBytes = 1u << 20;  // of a batch with more than one request
constexpr std::string_view kFirstDatabase = "0";

// The first words of errors whose reason is the store, not the request.
constexpr std::string_view kStoreErrors[] = {"MISCONF",  "OOM",    "QUOTA",    "DATALOSS",
                                             "READONLY", "NOPERM", "EXECABORT"};

// Returns a user who may do everything and is in no table.
UserPointer PrimaryUser(const UserTable& users) {
  User user = NewDefaultUser(users.rule_context());
  user.name = "(primary)";
  user.identity = UINT64_MAX;
  return std::make_shared<const User>(std::move(user));
}

}  // namespace

CommandStream::CommandStream(ServerState* server, SkippedKeys* skipped, const std::string& address)
    : server_(*server),
      skipped_(*skipped),
      executor_(server, &client_),
      place_{.database = std::string(kFirstDatabase)} {
  client_.id = server->clients.next_id.fetch_add(1);
  client_.address = address;
  client_.is_primary_link = true;
  client_.rights.BeginOwn(PrimaryUser(server->clients.users));
  VARVE_ASSERT(!client_.Restricted());
}

CommandStream::~CommandStream() { LeaveModes(&server_.clients, &client_); }

void CommandStream::BeginAfterCopy() {
  BeginConnection();
  place_ = {.database = std::string(kFirstDatabase)};
  client_.UseNamespace(kDefaultNamespace);
}

void CommandStream::BeginConnection() {
  EndTransaction(&client_);
  if (std::exchange(in_transaction_, false)) place_ = place_before_;
  parser_ = RespParser();
}

absl::StatusOr<CommandStream::Taken> CommandStream::Execute(ByteBuffer* input) {
  batch_.Clear();
  own_text_.clear();
  replies_.Clear();
  wants_ack_ = false;
  size_t taken = 0;
  size_t settled = 0;
  while (batch_.requests.size() < kMaxRequests && taken < kMaxBytes) {
    const size_t first = batch_.arguments.size();
    size_t consumed = 0;
    const RespParser::Result result =
        parser_.Next(input->data() + taken, input->size() - taken, &batch_.arguments, &consumed);
    if (result == RespParser::Result::kError)
      return absl::DataLossError(
          fmt::format("the stream has no request here: {}", parser_.error()));
    if (result == RespParser::Result::kNeedMore) break;
    taken += consumed;
    const bool ends = batch_.arguments.size() > first && !Add(first);
    if (!in_transaction_) settled = taken;
    if (ends) break;
  }
  VARVE_ASSERT(taken <= input->size());
  batch_.input_bytes = taken;
  VARVE_RETURN_IF_ERROR(ExecuteBatch());
  return Taken{.bytes = taken, .settled = settled, .wants_ack = wants_ack_};
}

// --- What the requests become --------------------------------------------------------------------

bool CommandStream::Add(size_t first) {
  const size_t count = batch_.arguments.size() - first;
  const Arguments arguments = Arguments(batch_.arguments).subspan(first);
  if (!batch_.requests.empty() && !place_.beyond && count == 3) {
    // Most requests are like the one before.
    const RequestBatch::Request& before = batch_.requests.back();
    if (before.command != nullptr && before.command->kind == CommandKind::kSet &&
        batch_.arguments[before.first] == arguments[0]) {
      batch_.requests.push_back({before.command, static_cast<uint32_t>(first), 3});
      return true;
    }
  }
  const StreamCommand command = FindStreamCommand(arguments[0]);
  switch (command.action) {
    case StreamAction::kIgnore:
      return true;
    case StreamAction::kReplication:
      wants_ack_ = count > 1 && EqualsIgnoreCase(arguments[1], "getack");
      return !wants_ack_;
    case StreamAction::kSelect:
      return Select(arguments, first);
    case StreamAction::kMulti:
      place_before_ = place_;
      [[fallthrough]];
    case StreamAction::kExec:
      in_transaction_ = command.action == StreamAction::kMulti;
      AddRequest(first, count);
      return true;
    default:
      break;
  }
  AddCommand(command, arguments, first);
  return true;
}

void CommandStream::AddCommand(const StreamCommand& command, Arguments arguments, size_t first) {
  const size_t count = arguments.size();
  const std::string_view key = count > 1 ? arguments[1] : std::string_view();
  if (command.action == StreamAction::kEverywhere) return AddRequest(first, count);
  if (place_.beyond)
    return skipped_.Add(fmt::format("command in database {}", place_.database), key);
  std::string type(command.type);
  switch (command.action) {
    case StreamAction::kExecute:
      return AddRequest(first, count);
    case StreamAction::kReplace:
      return AddReplacement(arguments, first);
    case StreamAction::kSetMany:
      return AddSetMany(arguments);
    case StreamAction::kDelete:
      return AddDeletion({key, {}});
    case StreamAction::kRestore:
      type = RestoredType(arguments);
      if (type == "string") return AddRequest(first, count);
      break;
    default:
      break;
  }
  if (type.empty()) type = fmt::format("command {}", UpperCase(arguments[0]));
  std::optional<StreamTarget> target;
  if (command.action != StreamAction::kSkip) target = TargetOf(arguments);
  skipped_.Add(type, target ? target->key : type == "script" ? std::string_view() : key);
  if (target) AddDeletion(*target);
}

bool CommandStream::Select(Arguments arguments, size_t first) {
  int64_t index = -1;
  place_.database = arguments.size() > 1 ? arguments[1] : std::string_view();
  place_.beyond =
      !ParseRespInteger(place_.database, &index) || index < 0 || index >= server_.options.databases;
  if (!place_.beyond) AddRequest(first, arguments.size());
  return true;
}

void CommandStream::AddRequest(size_t first, size_t count) {
  const Arguments arguments = Arguments(batch_.arguments).subspan(first, count);
  const Command* const command = FindCommand(arguments[0]);
  if (command == nullptr || !TakesArguments(*command, arguments)) {
    skipped_.Add(fmt::format("command {}", UpperCase(arguments[0])), count > 1 ? arguments[1] : "");
    return;
  }
  batch_.requests.push_back({command, static_cast<uint32_t>(first), static_cast<uint32_t>(count)});
}

void CommandStream::AddOwn(absl::Span<const std::string_view> words) {
  const size_t first = batch_.arguments.size();
  batch_.arguments.insert(batch_.arguments.end(), words.begin(), words.end());
  AddRequest(first, words.size());
}

void CommandStream::AddDeletion(const StreamTarget& target) {
  const bool is_elsewhere = !target.database.empty() && target.database != place_.database;
  if (is_elsewhere) AddOwn({"SELECT", target.database});
  AddOwn({"DEL", target.key});
  if (is_elsewhere) AddOwn({"SELECT", own_text_.emplace_back(place_.database)});
}

void CommandStream::AddReplacement(Arguments arguments, size_t first) {
  const size_t count = arguments.size();  // the views move when the batch grows
  const std::optional<StreamTarget> target = TargetOf(arguments);
  if (!target) return AddRequest(first, count);
  // In one step, so that nobody sees the key missing in between.
  if (!in_transaction_) AddOwn({"MULTI"});
  AddDeletion(*target);
  AddRequest(first, count);
  if (!in_transaction_) AddOwn({"EXEC"});
}

void CommandStream::AddSetMany(Arguments arguments) {
  const SetMany parts = PartsOfSetMany(arguments);
  if (parts.pairs.empty()) return skipped_.Add("command MSETEX", {});
  // The views move when the batch grows.
  const std::vector<std::string_view> pairs(parts.pairs.begin(), parts.pairs.end());
  const std::vector<std::string_view> options(parts.options.begin(), parts.options.end());
  if (!in_transaction_) AddOwn({"MULTI"});
  for (size_t i = 0; i < pairs.size(); i += 2) {
    std::vector<std::string_view> words = {"SET", pairs[i], pairs[i + 1]};
    words.insert(words.end(), options.begin(), options.end());
    AddOwn(words);
  }
  if (!in_transaction_) AddOwn({"EXEC"});
}

// --- Execution -----------------------------------------------------------------------------------

absl::Status CommandStream::ExecuteBatch() {
  if (batch_.empty()) return absl::OkStatus();
  executor_.Begin(&batch_);
  BatchExecutor::Progress progress = BatchExecutor::Progress::kMore;
  while (progress == BatchExecutor::Progress::kMore) {
    executor_.BeginReplies(&replies_);
    progress = executor_.Run(BatchExecutor::Where::kWorker);
    VARVE_ASSERT(!executor_.waits());
  }
  if (executor_.broken() || client_.close_after_reply)
    return absl::AbortedError("a command of the primary was not executed to its end");
  if (executor_.TakeSubmitted()) {
    if (const absl::Status pushed = server_.store->Push(); !pushed.ok())
      return absl::AbortedError(pushed.message());
  }
  return CheckReplies();
}

absl::Status CommandStream::CheckReplies() {
  std::string_view rest = replies_.bytes().view();
  absl::Status status;
  for (const RequestBatch::Request& request : batch_.requests) {
    const size_t size = ForEachError(rest, [&](std::string_view error) {
      if (status.ok()) status = NoteRefusal(request, error);
    });
    rest.remove_prefix(size);
  }
  VARVE_ASSERT(rest.empty());
  return status;
}

absl::Status CommandStream::NoteRefusal(const RequestBatch::Request& request,
                                        std::string_view error) {
  // The source is of another type, and its destination was removed.
  if (error == "ERR no such key") return absl::OkStatus();
  const Arguments arguments = batch_.ArgumentsOf(request);
  const std::string_view code = error.substr(0, error.find(' '));
  const bool is_of_store =
      std::find(std::begin(kStoreErrors), std::end(kStoreErrors), code) != std::end(kStoreErrors);
  if (is_of_store || request.command->name == "swapdb")
    return absl::AbortedError(fmt::format("the store refused {}: {}", arguments[0], error));
  const std::string kind = fmt::format("refused {}", UpperCase(request.command->name));
  const std::string_view key = arguments.size() > 1 ? arguments[1] : std::string_view();
  if (logged_.insert(fmt::format("{}: {}", kind, error)).second) {
    spdlog::warn("The primary {} sent a command that is refused here: {}: {}", client_.address,
                 kind, error);
  }
  skipped_.Add(kind, key);
  return absl::OkStatus();
}

absl::Status CommandStream::WaitUntilDurable() {
  SequenceNumber durable_after = kNoSequence;
  while (true) {
    const SequenceNumber next = replies_.NextDurableAfter(durable_after);
    if (next == kNoSequence) break;
    durable_after = next;
  }
  const absl::Status durable = server_.store->WaitUntilDurable(durable_after);
  return durable.ok() ? durable : absl::AbortedError(durable.message());
}

}  // namespace varve
