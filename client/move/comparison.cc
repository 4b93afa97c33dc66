#include "client/move/comparison.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "client/client.h"
#include "client/move/move_errors.h"
#include "client/move/page_reader.h"
#include "client/move/shown.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kMostDifferences = 100'000;
constexpr size_t kShownDifferences = 10;

// One side of a comparison: records in the order of keys.
class Side {
 public:
  // A server that does not have the namespace has no keys.
  absl::Status Open(const ClientOptions& server, const std::string& space, KeyBounds bounds) {
    absl::StatusOr<std::unique_ptr<PageReader>> opened =
        PageReader::Open(server, space, std::move(bounds));
    if (IsNoNamespace(opened.status())) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(opened.status());
    reader_ = *std::move(opened);
    return Ahead();
  }
  // Returns the record at hand; nullptr: there are no more.
  const MovedRecord* record() const { return at_ < page_.size() ? &page_[at_] : nullptr; }
  absl::Status Next() {
    ++at_;
    ++passed_;
    return at_ < page_.size() ? absl::OkStatus() : Ahead();
  }
  uint64_t passed() const { return passed_; }

 private:
  absl::Status Ahead() {
    page_.clear();
    at_ = 0;
    if (reader_ == nullptr || !reader_->has_more()) return absl::OkStatus();
    if (!reader_->is_requested()) reader_->Request();
    VARVE_ASSIGN_OR_RETURN(page_, reader_->Receive());
    if (reader_->has_more()) reader_->Request();
    return absl::OkStatus();
  }

  std::unique_ptr<PageReader> reader_;
  std::vector<MovedRecord> page_;
  size_t at_ = 0;
  uint64_t passed_ = 0;
};

// Returns in what two records of a key differ; empty: in nothing.
std::string DifferenceOf(const MovedRecord* source, const MovedRecord* target) {
  if (source == nullptr) return target == nullptr ? "" : "is at the target alone";
  if (target == nullptr) return "is missing at the target";
  if (source->value != target->value) return "has another value";
  if (source->expiry_ms != target->expiry_ms) return "expires at another time";
  return source->metadata == target->metadata ? "" : "has other metadata";
}

// Clients that work in one space each, made when they are needed.
class SpaceClients {
 public:
  explicit SpaceClients(const ClientOptions* server) : server_(*server) {}

  // Nothing: the key, or its namespace, is missing.
  absl::StatusOr<std::optional<MovedRecord>> Read(const std::string& space,
                                                  const std::string& key) {
    std::unique_ptr<Client>& client = clients_[space];
    if (client == nullptr) {
      absl::StatusOr<std::unique_ptr<Client>> made = Client::Connect(InSpace(server_, space));
      if (IsNoNamespace(made.status())) return std::optional<MovedRecord>();
      if (!made.ok()) return made.status();
      client = *std::move(made);
    }
    VARVE_ASSIGN_OR_RETURN(std::vector<MovedRecord> records,
                           ReadRecords(client.get(), {.min = "[" + key, .max = "[" + key}, 1));
    if (records.empty()) return std::optional<MovedRecord>();
    return std::optional<MovedRecord>(std::move(records.front()));
  }

 private:
  const ClientOptions& server_;
  std::map<std::string, std::unique_ptr<Client>> clients_;
};

}  // namespace

absl::Status Comparison::CompareAll(const std::vector<std::string>& spaces) {
  differences_.clear();
  counts_.clear();
  keys_ = 0;
  for (const std::string& space : spaces) VARVE_RETURN_IF_ERROR(Compare(space));
  return absl::OkStatus();
}

absl::Status Comparison::Compare(const std::string& space) {
  const KeyBounds bounds = BoundsOfPrefix(options_.prefix);
  const std::string& name = TargetSpace(options_, space);
  Side source, target;
  VARVE_RETURN_IF_ERROR(source.Open(options_.source, space, bounds));
  VARVE_RETURN_IF_ERROR(target.Open(options_.target, name, bounds));
  while (differences_.size() < kMostDifferences) {
    if (stopped_()) return absl::CancelledError("interrupted");
    const MovedRecord* ours = source.record();
    const MovedRecord* theirs = target.record();
    if (ours == nullptr && theirs == nullptr) break;
    if (ours != nullptr && theirs != nullptr && ours->key != theirs->key)
      (ours->key < theirs->key ? theirs : ours) = nullptr;
    Note(space, (ours != nullptr ? ours : theirs)->key, DifferenceOf(ours, theirs));
    if (ours != nullptr) VARVE_RETURN_IF_ERROR(source.Next());
    if (theirs != nullptr) VARVE_RETURN_IF_ERROR(target.Next());
  }
  keys_ += source.passed();
  counts_.push_back(fmt::format(
      "{}: {} keys at the source, {} at the target{}", Shown(space), source.passed(),
      target.passed(), differences_.size() < kMostDifferences ? "" : ", and not all read"));
  return absl::OkStatus();
}

absl::Status Comparison::CompareAgain() {
  SpaceClients sources(&options_.source), targets(&options_.target);
  std::vector<Difference> before = std::exchange(differences_, {});
  for (const Difference& difference : before) {
    if (stopped_()) return absl::CancelledError("interrupted");
    VARVE_ASSIGN_OR_RETURN(const std::optional<MovedRecord> ours,
                           sources.Read(difference.space, difference.key));
    VARVE_ASSIGN_OR_RETURN(const std::optional<MovedRecord> theirs,
                           targets.Read(TargetSpace(options_, difference.space), difference.key));
    Note(difference.space, difference.key,
         DifferenceOf(ours ? &*ours : nullptr, theirs ? &*theirs : nullptr));
  }
  return absl::OkStatus();
}

void Comparison::Note(const std::string& space, const std::string& key, const std::string& what) {
  if (!what.empty()) differences_.push_back({space, key, what});
}

std::vector<std::string> Comparison::Lines() const {
  std::vector<std::string> lines = counts_;
  for (size_t i = 0; i < std::min(differences_.size(), kShownDifferences); ++i) {
    const Difference& each = differences_[i];
    lines.push_back(
        fmt::format("{}: the key '{}' {}", Shown(each.space), Shown(each.key), each.what));
  }
  if (differences_.size() > kShownDifferences)
    lines.push_back(fmt::format("... and {} more", differences_.size() - kShownDifferences));
  lines.push_back(fmt::format("{} keys were compared, and {} differ", keys_, differences_.size()));
  return lines;
}

}  // namespace varve
