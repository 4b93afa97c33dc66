#include "client/move/move_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "client/move/move_errors.h"
#include "client/move/page_reader.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kFeedAge = "7d";

absl::Status Explained(const absl::Status& status, std::string_view what) {
  return absl::Status(status.code(), fmt::format("{}{}", std::string(status.message()), what));
}

// Returns whether the place that FEED INFO tells of lost its changes, as they exceeded its bounds.
bool IsLost(const Reply& info) {
  for (size_t i = 0; i + 1 < info.elements.size(); i += 2)
    if (info.elements[i].text == "lost") return info.elements[i + 1].integer != 0;
  return false;
}

}  // namespace

absl::Status MoveSource::Connect() {
  if (client_ != nullptr) return absl::OkStatus();
  const ClientOptions connection = InSpace(options_.source, options_.space.value_or("0"));
  VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(connection));
  return absl::OkStatus();
}

void MoveSource::DropIfLost() {
  if (client_ != nullptr && client_->pipeline().closed()) client_.reset();
}

absl::StatusOr<Reply> MoveSource::Call(std::initializer_list<std::string_view> words) {
  return client_->Call(absl::MakeConstSpan(words.begin(), words.size()), WhenLost::kResend);
}

absl::StatusOr<std::vector<std::string>> MoveSource::Spaces() {
  if (options_.space) return std::vector<std::string>{*options_.space};
  VARVE_ASSIGN_OR_RETURN(const Reply keyspace, Call({"INFO", "keyspace"}));
  std::vector<std::string> spaces;
  // Lines such as db3:keys=1,expires=0,avg_ttl=0.
  for (const absl::string_view line : absl::StrSplit(keyspace.text, '\n')) {
    const size_t colon = line.find(':');
    if (!absl::StartsWith(line, "db") || colon == absl::string_view::npos) continue;
    int number = 0;
    const absl::string_view digits = line.substr(2, colon - 2);
    if (absl::SimpleAtoi(digits, &number)) spaces.emplace_back(digits);
  }
  VARVE_ASSIGN_OR_RETURN(Reply named, Call({"NAMESPACE", "LIST"}));
  for (Reply& name : named.elements) spaces.push_back(std::move(name.text));
  return spaces;
}

absl::StatusOr<std::optional<SpaceDescription>> MoveSource::Describe(const std::string& space) {
  const absl::StatusOr<Reply> info = Call({"NAMESPACE", "INFO", space});
  if (IsNoNamespace(info.status())) return std::optional<SpaceDescription>();
  if (!info.ok()) return info.status();
  VARVE_ASSIGN_OR_RETURN(SpaceDescription description, ParseSpaceInfo(*info));
  return std::optional<SpaceDescription>(std::move(description));
}

absl::Status MoveSource::EnsureFeed(const std::string& name, SequenceNumber from) {
  const absl::StatusOr<Reply> info = Call({"FEED", "INFO", name});
  if (MayPass(info.status()) || absl::IsPermissionDenied(info.status())) return info.status();
  if (info.ok() && !IsLost(*info)) return absl::OkStatus();
  if (info.ok()) VARVE_RETURN_IF_ERROR(DropFeed(name));
  const std::string place = from == kNoSequence ? "NOW" : fmt::to_string(from);
  const std::string bytes = fmt::to_string(options_.feed_bytes);
  const absl::Status created =
      Call({"FEED", "CREATE", name, "FROM", place, "MAXBYTES", bytes, "MAXAGE", kFeedAge}).status();
  if (!absl::StrContains(created.message(), "the store of this server")) return created;
  return Explained(created,
                   "; a move reads the change feed, which a server over a cluster does not have: "
                   "`export` and `import` move its data");
}

absl::Status MoveSource::AckFeed(const std::string& name, SequenceNumber version) {
  return Call({"FEED", "ACK", name, fmt::to_string(version)}).status();
}

absl::Status MoveSource::DropFeed(const std::string& name) {
  return Call({"FEED", "DROP", name}).status();
}

absl::StatusOr<ChangeReply> MoveSource::Now() {
  VARVE_ASSIGN_OR_RETURN(Reply reply, Call({"CHANGES", "NOW"}));
  return ParseChangeReply(std::move(reply));
}

absl::StatusOr<ChangeReply> MoveSource::Changes(SequenceNumber since,
                                                std::chrono::milliseconds wait) {
  const std::string version = fmt::to_string(since), block = fmt::to_string(wait.count());
  std::vector<std::string_view> words = {"CHANGES", "SINCE", version, "NAMESPACE"};
  words.push_back(options_.space ? std::string_view(*options_.space) : "ALL");
  if (!options_.prefix.empty()) words.insert(words.end(), {"PREFIX", options_.prefix});
  words.push_back("FULL");
  if (wait.count() > 0) words.insert(words.end(), {"BLOCK", block});
  VARVE_ASSIGN_OR_RETURN(Reply reply, client_->Call(words, WhenLost::kResend));
  return ParseChangeReply(std::move(reply));
}

absl::Status MoveSource::MakeDurable() {
  const absl::Status saved = Call({"SAVE"}).status();
  if (!absl::IsPermissionDenied(saved)) return saved;
  return Explained(saved,
                   "; to know that nothing is behind, a move has the source put on disk (SAVE) "
                   "what was acknowledged before that");
}

}  // namespace varve
