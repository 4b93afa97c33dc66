#include "db/hbase/hbase_reader.h"

#include <algorithm>
#include <utility>

#include "db/hbase/range_reads.h"
#include "fmt/format.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Puts what the cell holds into `*result`, as the options want it.
absl::Status Show(const HbaseContext& context, const PlacedSpace& place, const ReadOptions& options,
                  const std::optional<std::string>& cell, ReadResult* result, std::string* value) {
  *result = ReadResult();
  if (!cell.has_value()) return absl::OkStatus();
  const std::optional<HbaseCell> decoded = DecodeCell(*cell);
  if (!decoded) return NotACell(place.table, cell->size());
  result->read_sequence = decoded->version;
  if (decoded->is_tombstone) return absl::OkStatus();
  result->expiry_ms = decoded->expiry_ms;
  result->expired = !options.expired_too && decoded->IsExpired(context.clock.NowMillis());
  if (result->expired) return absl::OkStatus();
  result->too_large = !options.without_value && decoded->value.size() > options.max_value_bytes;
  if (result->too_large) return absl::OkStatus();
  result->found = true;
  result->version = decoded->version;
  result->value_size = decoded->value.size();
  if (!options.without_value) value->assign(decoded->value);
  if (options.with_metadata && !decoded->metadata.empty())
    result->metadata = std::make_shared<const std::string>(decoded->metadata);
  return absl::OkStatus();
}

// One MultiGet, which ends before all keys are read once the values reach the bound of the options.
// Where a region has not answered, its keys fail, those too that were not asked for yet, and the
// keys of others have a new deadline, once.
class ManyReads final : public std::enable_shared_from_this<ManyReads> {
 public:
  ManyReads(HbaseContext& context, OperationGate::Pass pass, PlacedSpace place,
            const ReadOptions& options, std::vector<std::string> keys,
            StoreReads::MultiGetDone done)
      : context_(context),
        pass_(std::move(pass)),
        place_(std::move(place)),
        options_(options),
        keys_(std::move(keys)),
        done_(std::move(done)),
        deadline_(context.NewDeadline(options.deadline)),
        results_(keys_.size()) {
    for (MultiGetResult& result : results_) result.read = false;
  }

  void ReadNext() {
    std::vector<std::string> rows;
    while (next_ < keys_.size() && rows.size() < context_.RowsPerRead()) {
      const size_t index = next_++;
      if (results_[index].read) continue;
      // No key is as long as that.
      results_[index].read = keys_[index].size() > kMaxHbaseKeySize;
      if (results_[index].read) continue;
      asked_.push_back(index);
      rows.push_back(place_.RowOf(keys_[index]));
    }
    if (rows.empty()) return Finish(absl::OkStatus());
    context_.client->GetRows(
        place_.table, std::move(rows), deadline_,
        [self = shared_from_this()](const std::vector<HbaseClient::RowValue>& read) {
          self->Take(read);
        });
  }

 private:
  void Take(const std::vector<HbaseClient::RowValue>& read) {
    std::vector<size_t> lost;
    const absl::Status taken = GuardMemory("reading keys", [&] {
      for (size_t i = 0; i < asked_.size(); ++i) {
        MultiGetResult& result = results_[asked_[i]];
        if (!read[i].ok()) {
          result.read = true;
          result.status = AsStoreStatus(read[i].status());
          if (absl::IsUnavailable(read[i].status())) lost.push_back(asked_[i]);
          continue;
        }
        if (read_any_ && bytes_ >= options_.max_bytes) continue;
        read_any_ = true;
        result.read = true;
        result.status = Show(context_, place_, options_, *read[i], &result.result, &result.value);
        bytes_ += result.value.size();
        if (!result.status.ok()) continue;
        const std::string row = place_.RowOf(keys_[asked_[i]]);
        context_.guesses.Note(GuessedVersions::NameOf(place_.table, row),
                              result.result.read_sequence);
      }
      return absl::OkStatus();
    });
    asked_.clear();
    if (!taken.ok()) return Finish(taken);
    lost.empty() ? GoOn() : LeaveOut(std::move(lost));
  }

  void GoOn() {
    if (next_ == keys_.size() || bytes_ >= options_.max_bytes) return Finish(absl::OkStatus());
    ReadNext();
  }

  // Has the keys that were not read yet fail like the lost ones, if they are of the same regions.
  void LeaveOut(std::vector<size_t> lost) {
    std::vector<size_t> indices = std::move(lost);
    const size_t losses = indices.size();
    for (size_t index = 0; index < keys_.size(); ++index) {
      if (!results_[index].read) indices.push_back(index);
    }
    if (indices.size() == losses) return GoOn();
    std::vector<std::string> rows;
    for (const size_t index : indices) rows.push_back(place_.RowOf(keys_[index]));
    context_.client->SplitByRegion(place_.table, std::move(rows),
                                   [self = shared_from_this(), indices = std::move(indices),
                                    losses](const std::vector<HbaseClient::Part>& parts) {
                                     for (const HbaseClient::Part& part : parts)
                                       self->LeaveOut(indices, losses, part);
                                     if (!std::exchange(self->has_new_deadline_, true))
                                       self->deadline_ = self->context_.NewDeadline();
                                     self->GoOn();
                                   });
  }

  // `part`: places in `indices`, of which the first `losses` are those of keys that are lost.
  void LeaveOut(const std::vector<size_t>& indices, size_t losses, const HbaseClient::Part& part) {
    const auto lost =
        std::find_if(part.begin(), part.end(), [losses](uint32_t place) { return place < losses; });
    if (lost == part.end()) return;
    for (const uint32_t place : part) {
      MultiGetResult& result = results_[indices[place]];
      if (result.read) continue;
      result.read = true;
      result.status = results_[indices[*lost]].status;
    }
  }

  void Finish(const absl::Status& status) {
    if (!status.ok()) results_.clear();
    pass_.reset();
    done_(status, std::move(results_));
  }

  HbaseContext& context_;
  OperationGate::Pass pass_;
  const PlacedSpace place_;
  const ReadOptions options_;
  const std::vector<std::string> keys_;
  const StoreReads::MultiGetDone done_;
  HbaseClient::Deadline deadline_;
  bool has_new_deadline_ = false;
  std::vector<MultiGetResult> results_;
  std::vector<size_t> asked_;  // the keys that are being read
  size_t next_ = 0;
  size_t bytes_ = 0;
  bool read_any_ = false;
};

}  // namespace

absl::StatusOr<HbaseReader::Begun> HbaseReader::Begin(const ReadOptions& options) const {
  if (options.snapshot != nullptr) {
    return absl::FailedPreconditionError(
        "a store over HBase has no snapshots over several keys, so it can't read at one");
  }
  VARVE_ASSIGN_OR_RETURN(OperationGate::Pass pass, context_->operations.Enter());
  VARVE_ASSIGN_OR_RETURN(PlacedSpace place, context_->spaces.Find(options.space));
  return Begun{std::move(pass), std::move(place)};
}

void HbaseReader::GetAsync(const ReadOptions& options, std::string key,
                           StoreReads::GetDone done) const {
  absl::StatusOr<Begun> begun = Begin(options);
  if (!begun.ok()) return done(begun.status(), {});
  if (key.size() > kMaxHbaseKeySize) return done(ReadResult(), {});
  std::string row = begun->place.RowOf(key);
  const std::string table = begun->place.table;
  const GuessedVersions::Name name = GuessedVersions::NameOf(table, row);
  gathered_->Add(table, std::move(row), options.deadline,
                 [context = context_, options, begun = *std::move(begun), done = std::move(done),
                  name](const absl::StatusOr<std::optional<std::string>>& cell) mutable {
                   ReadResult result;
                   std::string value;
                   absl::Status status = cell.status();
                   if (status.ok()) {
                     status = GuardMemory("reading a key", [&] {
                       return Show(*context, begun.place, options, *cell, &result, &value);
                     });
                   }
                   if (status.ok()) context->guesses.Note(name, result.read_sequence);
                   begun.pass.reset();
                   status.ok() ? done(std::move(result), std::move(value))
                               : done(std::move(status), {});
                 });
}

void HbaseReader::MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                                StoreReads::MultiGetDone done) const {
  absl::StatusOr<Begun> begun = Begin(options);
  if (!begun.ok()) return done(begun.status(), {});
  std::make_shared<ManyReads>(*context_, std::move(begun->pass), std::move(begun->place), options,
                              std::move(keys), std::move(done))
      ->ReadNext();
}

void HbaseReader::ReadRangeAsync(const ReadOptions& options, StoreReads::RangeRequest range,
                                 StoreReads::RangeDone done) const {
  absl::StatusOr<Begun> begun = Begin(options);
  if (!begun.ok()) return done(begun.status());
  ReadPlacedRange(*context_, std::move(begun->place), options, std::move(range),
                  [pass = std::move(begun->pass),
                   done = std::move(done)](absl::StatusOr<RangeSlice> slice) mutable {
                    pass.reset();
                    done(std::move(slice));
                  });
}

void HbaseReader::CountAsync(const ReadOptions& options, std::string_view lower,
                             std::string_view upper, StoreReads::CountDone done) const {
  absl::StatusOr<Begun> begun = Begin(options);
  if (!begun.ok()) return done(begun.status());
  CountPlacedRange(*context_, begun->place, lower, upper,
                   [pass = std::move(begun->pass),
                    done = std::move(done)](absl::StatusOr<CountResult> count) mutable {
                     pass.reset();
                     done(std::move(count));
                   });
}

absl::StatusOr<ReadResult> HbaseReader::Get(const ReadOptions& options, std::string_view key,
                                            std::string* value) const {
  using Answer = std::pair<absl::StatusOr<ReadResult>, std::string>;
  Answer answer = AwaitAnswer<Answer>([&](std::function<void(Answer)> pass_on) {
    GetAsync(options, std::string(key),
             [pass_on = std::move(pass_on)](absl::StatusOr<ReadResult> result, std::string read) {
               pass_on({std::move(result), std::move(read)});
             });
    gathered_->Push();
  });
  if (answer.first.ok() && answer.first->found && !options.without_value)
    *value = std::move(answer.second);
  return std::move(answer.first);
}

absl::Status HbaseReader::MultiGet(const ReadOptions& options,
                                   absl::Span<const std::string_view> keys,
                                   absl::Span<MultiGetResult> results) const {
  using Answer = std::pair<absl::Status, std::vector<MultiGetResult>>;
  Answer answer = AwaitAnswer<Answer>([&](std::function<void(Answer)> pass_on) {
    MultiGetAsync(
        options, std::vector<std::string>(keys.begin(), keys.end()),
        [pass_on = std::move(pass_on)](absl::Status status, std::vector<MultiGetResult> read) {
          pass_on({std::move(status), std::move(read)});
        });
  });
  if (!answer.first.ok()) return answer.first;
  std::move(answer.second.begin(), answer.second.end(), results.begin());
  return absl::OkStatus();
}

absl::StatusOr<RangeSlice> HbaseReader::ReadRange(const ReadOptions& options,
                                                  const StoreReads::RangeRequest& range) const {
  return AwaitAnswer<absl::StatusOr<RangeSlice>>(
      [&](StoreReads::RangeDone done) { ReadRangeAsync(options, range, std::move(done)); });
}

absl::StatusOr<CountResult> HbaseReader::Count(const ReadOptions& options, std::string_view lower,
                                               std::string_view upper) const {
  return AwaitAnswer<absl::StatusOr<CountResult>>(
      [&](StoreReads::CountDone done) { CountAsync(options, lower, upper, std::move(done)); });
}

}  // namespace varve
