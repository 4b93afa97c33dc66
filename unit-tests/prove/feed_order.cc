#include "unit-tests/prove/feed_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr const char* kDeleted = "-";

absl::Status WrongOrder(std::string what) { return absl::InternalError("the feed: " + what); }

// The states of a key: 0 is the one before the first write, i the one behind the i-th.
struct States {
  std::map<std::string, size_t> place;  // of each number
  // A state begins no earlier than these instants, and ends no later, as far as calls tell. A
  // deletion may be that of any call.
  std::vector<int64_t> earliest;
  std::vector<int64_t> latest;
};

absl::StatusOr<States> StatesOf(const std::vector<std::string>& order) {
  States states;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] == kDeleted) {
      if (i == 0 || order[i - 1] == kDeleted) return WrongOrder("a deletion of what was not there");
    } else if (!states.place.emplace(order[i], i + 1).second) {
      return WrongOrder(fmt::format("the value {} was written twice", order[i]));
    }
  }
  states.earliest.assign(order.size() + 2, std::numeric_limits<int64_t>::min());
  states.latest.assign(order.size() + 2, std::numeric_limits<int64_t>::max());
  return states;
}

// Checks the effect of a write, and notes when it was.
absl::Status TakeWrite(const FeedCall& call, const std::vector<std::string>& order,
                       States* states) {
  const auto found = states->place.find(call.written);
  if (found == states->place.end()) {
    if (call.result != "1") return absl::OkStatus();
    return WrongOrder(fmt::format("the value {} is missing", call.written));
  }
  const size_t state = found->second;
  if (call.result == "0") return WrongOrder(fmt::format("the value {} was refused", call.written));
  const std::string before = state == 1 ? kDeleted : order[state - 2];
  if (call.kind == FeedCall::Kind::kCompareAndSet && before != call.expected) {
    return WrongOrder(fmt::format("the value {} expected {} and stands behind {}", call.written,
                                  call.expected, before));
  }
  states->earliest[state] = call.call;
  states->latest[state] = call.done;
  return absl::OkStatus();
}

// A state begins behind those before it and before those behind it.
absl::Status Spread(States* states) {
  for (size_t i = 1; i < states->earliest.size(); ++i)
    states->earliest[i] = std::max(states->earliest[i], states->earliest[i - 1]);
  for (size_t i = states->latest.size() - 1; i > 0; --i)
    states->latest[i - 1] = std::min(states->latest[i - 1], states->latest[i]);
  for (size_t i = 0; i < states->earliest.size(); ++i) {
    if (states->earliest[i] > states->latest[i])
      return WrongOrder(fmt::format("write {} was done before one that is in front of it", i));
  }
  return absl::OkStatus();
}

absl::Status CheckRead(const FeedCall& call, const States& states) {
  if (call.result == kDeleted) return absl::OkStatus();  // that of any deletion
  const auto found = states.place.find(call.result);
  if (found == states.place.end())
    return WrongOrder(fmt::format("the value {} was read and is missing", call.result));
  const size_t state = found->second;
  if (states.earliest[state] > call.done || states.latest[state + 1] < call.call)
    return WrongOrder(fmt::format("the value {} was read when it was not there", call.result));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFeedOrder(const std::vector<FeedCall>& calls,
                            const std::vector<std::string>& order) {
  VARVE_ASSIGN_OR_RETURN(States states, StatesOf(order));
  int64_t deletions = std::count(order.begin(), order.end(), kDeleted);
  int64_t unknown_deletions = 0;
  for (const FeedCall& call : calls) {
    if (!call.written.empty()) VARVE_RETURN_IF_ERROR(TakeWrite(call, order, &states));
    if (call.kind != FeedCall::Kind::kDelete) continue;
    deletions -= call.result == "1" ? 1 : 0;
    unknown_deletions += call.result.empty() ? 1 : 0;
  }
  if (deletions < 0 || deletions > unknown_deletions) {
    return WrongOrder(
        fmt::format("{} deletions more than were told of, of which {} replies were lost", deletions,
                    unknown_deletions));
  }
  VARVE_RETURN_IF_ERROR(Spread(&states));
  for (const FeedCall& call : calls) {
    if (call.kind == FeedCall::Kind::kGet && !call.result.empty())
      VARVE_RETURN_IF_ERROR(CheckRead(call, states));
  }
  return absl::OkStatus();
}

}  // namespace varve::prove
