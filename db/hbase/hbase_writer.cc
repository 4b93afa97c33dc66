#include "db/hbase/hbase_writer.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/key_group.h"

namespace varve {
namespace {

constexpr size_t kMostGathered = 1'024;      // of one table, sent without waiting for Push()
constexpr size_t kMostBytesSent = 4u << 20;  // of independent writes at a time

// Splits independent intents where they would be too much for one call.
std::vector<std::vector<RowIntent>> SplitBySize(std::vector<RowIntent> intents) {
  std::vector<std::vector<RowIntent>> parts(1);
  size_t bytes = 0;
  for (RowIntent& intent : intents) {
    const size_t more = intent.row.size() + intent.metadata.size() + intent.value.size();
    const bool full = bytes + more > kMostBytesSent || parts.back().size() >= kMostGathered;
    if (full && !parts.back().empty()) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += more;
    parts.back().push_back(std::move(intent));
  }
  return parts;
}

// Calls `done` once all parts have been answered, with the first error.
class AllParts final {
 public:
  AllParts(HbaseContext* context, size_t parts, size_t operations, OperationGate::Pass pass,
           StoreWrites::WriteDone done)
      : context_(context),
        left_(parts),
        operations_(operations),
        pass_(std::move(pass)),
        done_(std::move(done)) {}

  void Take(const std::vector<absl::Status>& statuses,
            const std::vector<SequenceNumber>& versions) {
    {
      const absl::MutexLock lock(&mutex_);
      for (const absl::Status& status : statuses) status_.Update(status);
      for (const SequenceNumber version : versions) version_ = std::max(version_, version);
      if (--left_ > 0) return;
    }
    // Nobody else is left.
    if (status_.ok()) context_->changes += operations_;
    pass_.reset();
    if (!status_.ok()) return done_(status_);
    done_(CommitResult{.sequence = version_});
  }

 private:
  HbaseContext* const context_;
  absl::Mutex mutex_;
  size_t left_;
  const size_t operations_;
  SequenceNumber version_ = kNoSequence;
  absl::Status status_;
  OperationGate::Pass pass_;
  const StoreWrites::WriteDone done_;
};

absl::Status CheckSize(const BatchPlan::Table& table) {
  if (table.bytes <= kMaxCommitBytes && table.intents.size() <= kMaxCommitRows)
    return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a write of {} keys and {} bytes in one step: this server's store takes at most {} keys and "
      "{} bytes; write them in several steps",
      table.intents.size(), table.bytes, kMaxCommitRows, kMaxCommitBytes));
}

}  // namespace

// --- Turns ---------------------------------------------------------------------------------------

// Holds the turns of some keys until it is destroyed. A turn only saves tries; a writer whose turn
// does not come in time goes on without it.
class HbaseWriter::Turn {
 public:
  Turn(HbaseWriter* writer, absl::Span<const std::string_view> keys,
       HbaseClient::Deadline deadline) {
    std::set<size_t> turns;  // in an order that all writers share
    for (const std::string_view key : keys)
      turns.insert(std::hash<std::string_view>()(key) % writer->turns_.size());
    for (const size_t turn : turns) {
      std::unique_lock<std::timed_mutex> lock(writer->turns_[turn], deadline);
      if (!lock.owns_lock()) return;
      locks_.push_back(std::move(lock));
    }
  }

 private:
  std::vector<std::unique_lock<std::timed_mutex>> locks_;
};

// --- Writes --------------------------------------------------------------------------------------

absl::StatusOr<BatchPlan> HbaseWriter::Plan(const WriteOptions& options,
                                            const WriteBatch& batch) const {
  VARVE_RETURN_IF_ERROR(batch.status());
  VARVE_ASSIGN_OR_RETURN(BatchPlan plan, PlanBatch(*context_, batch));
  const bool one_key = plan.tables.size() == 1 && plan.tables.front().intents.size() == 1;
  if (plan.tables.empty() || options.independent_keys || one_key) return plan;
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  VARVE_RETURN_IF_ERROR(CheckGroups(batch, [&](NamespaceId space) -> std::optional<KeyGrouping> {
    const SpaceCatalog::Space* const known = catalog->Find(space);
    return known == nullptr ? KeyGrouping() : known->description.options.grouping;
  }));
  VARVE_RETURN_IF_ERROR(CheckSize(plan.tables.front()));
  return plan;
}

void HbaseWriter::Commit(const WriteOptions& options, BatchPlan plan, OperationGate::Pass pass,
                         StoreWrites::WriteDone done) {
  const HbaseClient::Deadline deadline = context_->NewDeadline(options.deadline);
  if (!options.independent_keys) {
    BatchPlan::Table& table = plan.tables.front();
    const auto parts =
        std::make_shared<AllParts>(context_, 1, plan.operations, std::move(pass), std::move(done));
    return RowCommit::Together(
        context_, std::move(table.name), std::move(table.intents), deadline,
        [parts](const std::vector<absl::Status>& statuses,
                const std::vector<SequenceNumber>& versions) { parts->Take(statuses, versions); });
  }
  std::vector<std::pair<std::string, std::vector<RowIntent>>> sent;
  for (BatchPlan::Table& table : plan.tables) {
    for (std::vector<RowIntent>& part : SplitBySize(std::move(table.intents)))
      sent.emplace_back(table.name, std::move(part));
  }
  const auto parts = std::make_shared<AllParts>(context_, sent.size(), plan.operations,
                                                std::move(pass), std::move(done));
  for (auto& [name, intents] : sent) {
    RowCommit::Each(
        context_, name, std::move(intents), deadline,
        [parts](const std::vector<absl::Status>& statuses,
                const std::vector<SequenceNumber>& versions) { parts->Take(statuses, versions); });
  }
}

absl::StatusOr<CommitResult> HbaseWriter::Write(const WriteOptions& options, WriteBatch* batch) {
  VARVE_ASSIGN_OR_RETURN(OperationGate::Pass pass, context_->operations.Enter());
  VARVE_ASSIGN_OR_RETURN(BatchPlan plan, Plan(options, *batch));
  absl::StatusOr<CommitResult> committed = CommitResult();
  if (!plan.catalog_changes.empty()) {
    committed = namespaces_->Change(plan, context_->NewDeadline(options.deadline));
    if (committed.ok()) context_->changes += plan.catalog_changes.size();
  } else if (!plan.tables.empty()) {
    committed = AwaitAnswer<absl::StatusOr<CommitResult>>([&](StoreWrites::WriteDone done) {
      Commit(options, std::move(plan), std::move(pass), std::move(done));
    });
  }
  if (committed.ok()) batch->Clear();
  return committed;
}

void HbaseWriter::WriteAsync(const WriteOptions& options, WriteBatch* batch,
                             StoreWrites::WriteDone done) {
  absl::StatusOr<OperationGate::Pass> pass = context_->operations.Enter();
  if (!pass.ok()) return done(pass.status());
  absl::StatusOr<BatchPlan> plan = GuardMemory("writing", [&] { return Plan(options, *batch); });
  if (!plan.ok()) return done(plan.status());
  if (!plan->catalog_changes.empty()) {
    return done(absl::FailedPreconditionError(
        "namespaces can't be changed asynchronously in a store over HBase"));
  }
  batch->Clear();
  if (plan->tables.empty()) return done(CommitResult());
  const bool one_key = plan->tables.size() == 1 && plan->tables.front().intents.size() == 1;
  if (one_key && !context_->IsEarly(options.deadline))
    return Gather(*std::move(plan), *std::move(pass), std::move(done));
  Commit(options, *std::move(plan), *std::move(pass), std::move(done));
}

void HbaseWriter::Gather(BatchPlan plan, OperationGate::Pass pass, StoreWrites::WriteDone done) {
  BatchPlan::Table& from = plan.tables.front();
  Gathered write{std::move(from.intents.front()), from.bytes, context_->NewDeadline(), {}};
  write.waiters.push_back({plan.operations, std::move(pass), std::move(done)});
  std::vector<Gathered> full;
  {
    const absl::MutexLock lock(&mutex_);
    auto table = std::find_if(gathered_.begin(), gathered_.end(),
                              [&](const GatheredTable& each) { return each.name == from.name; });
    if (table == gathered_.end()) table = gathered_.insert(table, {.name = from.name});
    table->writes.push_back(std::move(write));
    if (table->writes.size() >= kMostGathered) full.swap(table->writes);
  }
  if (!full.empty()) Send(std::move(from.name), std::move(full));
}

void HbaseWriter::Push() {
  std::vector<GatheredTable> gathered;
  {
    const absl::MutexLock lock(&mutex_);
    gathered.swap(gathered_);
  }
  for (GatheredTable& table : gathered) {
    if (!table.writes.empty()) Send(std::move(table.name), std::move(table.writes));
  }
}

void HbaseWriter::Overtake(Gathered later, Gathered* earlier) {
  std::move(earlier->waiters.begin(), earlier->waiters.end(), std::back_inserter(later.waiters));
  later.deadline = std::min(later.deadline, earlier->deadline);
  *earlier = std::move(later);
}

// Sends what has distinct rows and is not too much at a time; the rest follows at once, side by
// side with it.
void HbaseWriter::Send(std::string table, std::vector<Gathered> writes) {
  while (!writes.empty()) {
    std::vector<Gathered> rest;
    const auto sent = std::make_shared<std::vector<Gathered>>();
    std::map<std::string, size_t> rows;
    size_t bytes = 0;
    for (Gathered& write : writes) {
      const auto same = rows.find(write.intent.row);
      const bool fits = sent->empty() || bytes + write.bytes <= kMostBytesSent;
      if (same != rows.end() && write.is_plain_put() && (*sent)[same->second].is_plain_put()) {
        Gathered& earlier = (*sent)[same->second];
        bytes += write.bytes - earlier.bytes;
        Overtake(std::move(write), &earlier);
      } else if (same != rows.end() || !fits) {
        rest.push_back(std::move(write));
      } else if (write.is_plain_put() && !Begin(table, &write)) {
        continue;
      } else {
        bytes += write.bytes;
        rows.emplace(write.intent.row, sent->size());
        sent->push_back(std::move(write));
      }
    }
    if (!sent->empty()) SendByRegion(table, sent);
    writes = std::move(rest);
  }
}

// Returns whether no put of the row is under way; else the write waits for it.
bool HbaseWriter::Begin(const std::string& table, Gathered* write) {
  const absl::MutexLock lock(&mutex_);
  const auto [row, is_first] = under_way_.try_emplace({table, write->intent.row});
  if (is_first) return true;
  if (row->second.has_value()) {
    Overtake(std::move(*write), &*row->second);
  } else {
    row->second = std::move(*write);
  }
  return false;
}

std::vector<HbaseWriter::Gathered> HbaseWriter::Release(const std::string& table,
                                                        const std::vector<std::string>& rows) {
  std::vector<Gathered> released;
  const absl::MutexLock lock(&mutex_);
  for (const std::string& name : rows) {
    const auto row = under_way_.find({table, name});
    VARVE_ASSERT(row != under_way_.end());
    if (row->second.has_value()) released.push_back(*std::move(row->second));
    under_way_.erase(row);
  }
  return released;
}

// Writers of one region do not wait for another one, which may be away.
void HbaseWriter::SendByRegion(const std::string& table,
                               const std::shared_ptr<std::vector<Gathered>>& writes) {
  if (writes->size() == 1) return SendPart(table, writes, {0});
  std::vector<std::string> rows;
  for (const Gathered& write : *writes) rows.push_back(write.intent.row);
  context_->client->SplitByRegion(
      table, std::move(rows), [this, table, writes](const std::vector<HbaseClient::Part>& parts) {
        for (const HbaseClient::Part& part : parts) SendPart(table, writes, part);
      });
}

void HbaseWriter::SendPart(const std::string& table,
                           const std::shared_ptr<std::vector<Gathered>>& writes,
                           const HbaseClient::Part& part) {
  std::vector<RowIntent> intents;
  std::vector<std::string> puts;
  HbaseClient::Deadline deadline = HbaseClient::Deadline::max();
  for (const uint32_t number : part) {
    Gathered& write = (*writes)[number];
    if (write.is_plain_put()) puts.push_back(write.intent.row);
    deadline = std::min(deadline, write.deadline);
    intents.push_back(std::move(write.intent));
  }
  const auto answer = [this, table, writes, part, puts = std::move(puts)](
                          const std::vector<absl::Status>& statuses,
                          const std::vector<SequenceNumber>& versions) {
    std::vector<Gathered> released = Release(table, puts);
    for (size_t i = 0; i < part.size(); ++i) {
      for (Waiter& waiter : (*writes)[part[i]].waiters) {
        if (statuses[i].ok()) context_->changes += waiter.operations;
        waiter.pass.reset();
        statuses[i].ok() ? waiter.done(CommitResult{.sequence = versions[i]})
                         : waiter.done(statuses[i]);
      }
    }
    // Without them the store may be gone by now.
    if (!released.empty()) Send(table, std::move(released));
  };
  RowCommit::Each(context_, table, std::move(intents), deadline, answer);
}

absl::StatusOr<CommitResult> HbaseWriter::Update(
    const WriteOptions& options, absl::Span<const std::string_view> keys,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteOptions bounded = options;
  bounded.deadline = context_->NewDeadline(options.deadline);
  std::optional<Turn> turn;
  for (;;) {
    WriteBatch batch;
    VARVE_RETURN_IF_ERROR(decide(&batch));
    absl::StatusOr<CommitResult> result = Write(bounded, &batch);
    if (!absl::IsAborted(result.status())) return result;
    if (std::chrono::steady_clock::now() >= bounded.deadline) {
      return absl::UnavailableError(fmt::format(
          "other writers changed the same keys again and again for {} ms, so this update was given "
          "up; nothing of it was written",
          context_->options.deadline.count()));
    }
    if (!turn.has_value()) turn.emplace(this, keys, bounded.deadline);
  }
}

}  // namespace varve
