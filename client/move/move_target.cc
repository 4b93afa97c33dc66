#include "client/move/move_target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "client/move/key_bounds.h"
#include "client/move/move_errors.h"
#include "client/move/page_reader.h"
#include "client/move/shown.h"
#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/size_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

using std::chrono::milliseconds;

constexpr size_t kAhead = 2000;                  // requests under way
constexpr size_t kAheadBytes = size_t{8} << 20;  // and their bytes
// A server with files of its own executes what it has read, or the kernel has for it, at once.
constexpr milliseconds kOwnFilesRequest{1000};
// A server over a cluster whose settings may not be read.
constexpr milliseconds kUnknownDeadline{30'000};
constexpr uint64_t kShownRefusals = 10;

absl::Status Explained(const absl::Status& status, const std::string& what) {
  return absl::Status(status.code(), fmt::format("{}{}", std::string(status.message()), what));
}

// An answer that concerns the one key alone.
bool IsOfKey(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && !MayPass(status) && !IsNoNamespace(status) &&
         !absl::StartsWith(status.message(), "READONLY");
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

MoveTarget::MoveTarget(const MoveOptions* options, bool follows, Say say, Pause pause)
    : options_(*options), say_(std::move(say)), pause_(std::move(pause)) {
  if (follows) lost_ = Clock::now();
}

absl::Status MoveTarget::Connect(const std::function<bool()>& stopped) {
  if (client_ == nullptr) {
    VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(InSpace(options_.target, "0")));
    used_.clear();
    sent_.clear();
  }
  if (!lost_) return absl::OkStatus();
  const Clock::time_point due = *lost_ + LongestRequest();
  while (!stopped() && Clock::now() < due)
    pause_(std::chrono::ceil<milliseconds>(due - Clock::now()));
  if (stopped()) return absl::CancelledError("the move is to end");
  lost_.reset();
  return absl::OkStatus();
}

void MoveTarget::DropIfLost() {
  if (client_ == nullptr || !client_->pipeline().closed()) return;
  client_.reset();
  lost_ = Clock::now();
}

milliseconds MoveTarget::LongestRequest() {
  const absl::StatusOr<Reply> settings = Call({"CONFIG", "GET", "store", "store-deadline"});
  if (!settings.ok()) return kUnknownDeadline;
  milliseconds longest = kOwnFilesRequest;
  bool is_elsewhere = false;
  for (size_t i = 0; i + 1 < settings->elements.size(); i += 2) {
    const std::string& name = settings->elements[i].text;
    const std::string& value = settings->elements[i + 1].text;
    if (name == "store") is_elsewhere = value == "hbase";
    const auto deadline = ParseDuration(value);
    if (name == "store-deadline" && deadline.ok())
      longest += std::chrono::duration_cast<milliseconds>(*deadline);
  }
  return is_elsewhere ? longest : kOwnFilesRequest;
}

absl::StatusOr<Reply> MoveTarget::Call(absl::Span<const std::string_view> words) {
  VARVE_ASSERT(sent_.empty());
  return client_->Call(words, WhenLost::kReport);
}

absl::StatusOr<Reply> MoveTarget::Call(std::initializer_list<std::string_view> words) {
  return Call(absl::MakeConstSpan(words.begin(), words.size()));
}

absl::Status MoveTarget::Use(const std::string& space) {
  const std::string& name = NameOf(space);
  if (used_ == name) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(TakeReplies(0));
  used_.clear();
  const absl::StatusOr<Reply> used =
      IsDatabaseName(name) ? Call({"SELECT", name}) : Call({"NAMESPACE", "USE", name});
  if (!used.ok()) return Explained(used.status(), fmt::format(" (the target's, {})", Shown(name)));
  used_ = name;
  return absl::OkStatus();
}

std::string MoveTarget::GroupingOf(const std::string& name,
                                   const SpaceDescription* description) const {
  const auto given = options_.groupings.find(name);
  if (given != options_.groupings.end()) return given->second;
  return description == nullptr ? std::string() : description->grouping;
}

absl::Status MoveTarget::Ensure(const std::string& space,
                                const std::optional<SpaceDescription>& description) {
  const std::string& name = NameOf(space);
  const std::string grouping = GroupingOf(name, description ? &*description : nullptr);
  bool is_new = false;
  if (!IsDatabaseName(name)) {
    VARVE_ASSIGN_OR_RETURN(is_new, Create(name, grouping));
  } else if (!grouping.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("database {} has no groups: only a namespace that is created has them; --into "
                    "moves a database into one",
                    name));
  }
  VARVE_RETURN_IF_ERROR(Use(space));
  if (!is_new && !Knows(space)) VARVE_RETURN_IF_ERROR(CheckGrouping(space, grouping));
  if (description) {
    const uint64_t expiry_ms = description->usual_expiry_ms;
    // A namespace that its user has made may have another one.
    if (expiry_ms != 0 || (!is_new && !IsDatabaseName(name))) {
      const SpaceOptions expiry{.words = {"PX", fmt::to_string(expiry_ms)}};
      VARVE_RETURN_IF_ERROR(SetOptions(space, expiry, expiry.words));
    }
    const std::vector<std::string> no_quota = {"MAXKEYS", "0", "MAXBYTES", "0", "EVICT", "none"};
    for (const SpaceOptions& options : description->options) {
      // Whether the target has quotas is to be known now; they are set at the end.
      const bool is_quota = options.kind == SpaceOptions::Kind::kQuota;
      VARVE_RETURN_IF_ERROR(SetOptions(space, options, is_quota ? no_quota : options.words));
    }
  }
  expires_[space] = description && description->usual_expiry_ms != 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> MoveTarget::Create(const std::string& name, const std::string& grouping) {
  VARVE_RETURN_IF_ERROR(TakeReplies(0));
  std::vector<std::string_view> words = {"NAMESPACE", "CREATE", name};
  if (grouping == "together") {
    words.insert(words.end(), {"TOGETHER", "yes"});
  } else if (!grouping.empty()) {
    words.insert(words.end(), {"GROUP", grouping});
  }
  const absl::Status created = Call(words).status();
  if (created.ok()) return true;
  // It may be there already, which stores say in words of their own.
  const bool is_refused = absl::IsFailedPrecondition(created) && !MayPass(created);
  if (!is_refused || !Call({"NAMESPACE", "USE", name}).ok()) return created;
  used_ = name;
  return false;
}

absl::Status MoveTarget::CheckGrouping(const std::string& space, const std::string& grouping) {
  if (grouping.empty()) return absl::OkStatus();
  const std::string& name = NameOf(space);
  // Of one that holds many keys, a target may read them all to tell.
  VARVE_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty(space));
  if (!is_empty) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const Reply info, Call({"NAMESPACE", "INFO", name}));
  VARVE_ASSIGN_OR_RETURN(const SpaceDescription there, ParseSpaceInfo(info));
  if (there.grouping == grouping) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the target's namespace {} has the grouping '{}', and '{}' is wanted; a grouping never "
      "changes: drop the namespace there, or name its grouping with --grouping={}=...",
      Shown(name), Shown(there.grouping), Shown(grouping), Shown(name)));
}

absl::Status MoveTarget::SetOptions(const std::string& space, const SpaceOptions& options,
                                    const std::vector<std::string>& words) {
  VARVE_RETURN_IF_ERROR(TakeReplies(0));
  const std::string& name = NameOf(space);
  std::vector<std::string_view> request = {"NAMESPACE", "ALTER", name};
  request.insert(request.end(), words.begin(), words.end());
  const absl::Status set = Call(request).status();
  if (!absl::IsFailedPrecondition(set) || MayPass(set)) return set;
  const std::string text =
      fmt::format("the target does not take {} of {}: {}", Joined(options.words), Shown(name),
                  std::string(set.message()));
  if (options.kind == SpaceOptions::Kind::kStorage || options_.skip_options) {
    say_(text + "; it is left out");
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      text + "; --skip-options moves namespaces without the options that the target lacks");
}

absl::Status MoveTarget::SetQuotas(const std::string& space, const SpaceDescription& description) {
  for (const SpaceOptions& options : description.options) {
    if (options.kind == SpaceOptions::Kind::kQuota)
      VARVE_RETURN_IF_ERROR(SetOptions(space, options, options.words));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MoveTarget::IsEmpty(const std::string& space) {
  const absl::Status used = Use(space);
  if (IsNoNamespace(used)) return true;
  VARVE_RETURN_IF_ERROR(used);
  VARVE_ASSIGN_OR_RETURN(const std::vector<MovedRecord> first,
                         ReadRecords(client_.get(), BoundsOfPrefix(options_.prefix), 1));
  return first.empty();
}

absl::Status MoveTarget::Write(const KeyWindow& window) {
  for (const auto& [space, keys] : window.spaces()) {
    VARVE_RETURN_IF_ERROR(Use(space));
    for (const auto& [key, record] : keys) {
      if (record) {
        SendRecord(space, *record);
      } else {
        client_->pipeline().Send({"DEL", key}, WhenLost::kReport);
        sent_.push_back({&space, &key});
      }
      const bool is_far = client_->pipeline().outstanding_bytes() >= kAheadBytes;
      VARVE_RETURN_IF_ERROR(TakeReplies(is_far ? sent_.size() / 2 : kAhead));
    }
  }
  return TakeReplies(0);
}

void MoveTarget::SendRecord(const std::string& space, const MovedRecord& record) {
  const std::string expiry = fmt::to_string(record.expiry_ms);
  std::vector<std::string_view> words = {"SET", record.key, record.value};
  if (record.expiry_ms != 0) words.insert(words.end(), {"PXAT", expiry});
  if (!record.metadata.empty()) words.insert(words.end(), {"META", record.metadata});
  client_->pipeline().Send(words, WhenLost::kReport);
  sent_.push_back({&space, &record.key});
  if (record.expiry_ms != 0 || !expires_.at(space)) return;
  client_->pipeline().Send({"PERSIST", record.key}, WhenLost::kReport);
  sent_.push_back({&space, &record.key});
}

absl::Status MoveTarget::TakeReplies(size_t most) {
  absl::Status failed;
  while (sent_.size() > (failed.ok() ? most : 0)) {
    const Sent sent = sent_.front();
    sent_.pop_front();
    const absl::Status taken = Take(sent, client_->Receive());
    // What may pass is told only where nothing is refused for good.
    if (failed.ok() || (MayPass(failed) && !MayPass(taken) && !taken.ok())) failed = taken;
  }
  return failed;
}

absl::Status MoveTarget::Take(const Sent& sent, const absl::StatusOr<Reply>& reply) {
  const absl::Status status = reply.ok() ? StatusOf(*reply) : reply.status();
  if (status.ok() || !IsOfKey(status)) return status;
  const std::string text =
      fmt::format("the target refuses the key '{}' of {}: {}", Shown(*sent.key),
                  Shown(NameOf(*sent.space)), std::string(status.message()));
  if (!options_.skip_refused) {
    return absl::FailedPreconditionError(text + "; --skip-refused moves what the target takes");
  }
  if (++refused_ <= kShownRefusals) say_(text + "; it is left out");
  return absl::OkStatus();
}

absl::Status MoveTarget::DeleteRange(const std::string& space, const std::string& begin,
                                     const std::string& end) {
  VARVE_RETURN_IF_ERROR(Use(space));
  const std::string min = "[" + begin, max = end.empty() ? "+" : "(" + end;
  return Call({"DELRANGE", min, max}).status();
}

absl::Status MoveTarget::Clear(const std::string& space) {
  VARVE_RETURN_IF_ERROR(Use(space));
  const absl::StatusOr<Reply> cleared =
      options_.prefix.empty() ? Call({"FLUSHDB"}) : Call({"DELPREFIX", options_.prefix});
  return cleared.status();
}

absl::Status MoveTarget::Drop(const std::string& space) {
  VARVE_RETURN_IF_ERROR(TakeReplies(0));
  VARVE_RETURN_IF_ERROR(Call({"SELECT", "0"}).status());
  used_.clear();
  expires_.erase(space);
  const absl::Status dropped = Call({"NAMESPACE", "DROP", NameOf(space)}).status();
  return IsNoNamespace(dropped) ? absl::OkStatus() : dropped;
}

}  // namespace varve
