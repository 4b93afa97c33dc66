#include "unit-tests/prove/feed_watcher.h"

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr size_t kReplyParts = 4;
constexpr size_t kFields = 6;

absl::Status Wrong(const std::string& what) { return absl::InternalError("the feed: " + what); }

}  // namespace

absl::Status FeedWatcher::Run(Client* client) {
  for (;;) {
    bool had_any = false;
    const absl::Status status = ReadOnce(client, &had_any);
    if (absl::IsUnavailable(status) || absl::IsUnknown(status)) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(status);
  }
}

absl::Status FeedWatcher::ReadToEnd(Client* client) {
  for (bool had_any = true; had_any;) VARVE_RETURN_IF_ERROR(ReadOnce(client, &had_any));
  return absl::OkStatus();
}

absl::Status FeedWatcher::ReadOnce(Client* client, bool* had_any) {
  VARVE_ASSIGN_OR_RETURN(
      const Reply reply,
      client->Call({"CHANGES", "SINCE", fmt::to_string(position_), "BLOCK", "100"}));
  if (reply.elements.size() != kReplyParts) return Wrong("a reply that makes no sense");
  for (const Reply& commit : reply.elements[3].elements) VARVE_RETURN_IF_ERROR(Take(commit));
  if (reply.elements[1].integer < position_) return Wrong("the position went back");
  position_ = reply.elements[1].integer;
  *had_any = !reply.elements[3].elements.empty();
  return absl::OkStatus();
}

absl::Status FeedWatcher::Take(const Reply& commit) {
  if (commit.elements[0].integer <= last_)
    return Wrong(fmt::format("version {} behind {}", commit.elements[0].integer, last_));
  last_ = commit.elements[0].integer;
  for (const Reply& operation : commit.elements[2].elements) {
    if (operation.elements.size() != kFields) return Wrong("an operation that makes no sense");
    const std::string& value = operation.elements[3].text;
    std::vector<std::string>& order = orders_[operation.elements[2].text];
    if (operation.elements[0].text == "set") order.push_back(value.substr(0, value.find(':')));
    if (operation.elements[0].text == "del") order.emplace_back("-");
  }
  return absl::OkStatus();
}

const std::vector<std::string>& FeedWatcher::OrderOf(const std::string& key) const {
  static const std::vector<std::string> nothing;
  const auto found = orders_.find(key);
  return found == orders_.end() ? nothing : found->second;
}

}  // namespace varve::prove
