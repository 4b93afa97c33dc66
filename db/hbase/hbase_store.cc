#include "db/hbase/hbase_store.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "db/hbase/hbase_iterator.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kPauseOfClose = absl::Milliseconds(10);
// The calls under way at which writers should wait.
constexpr double kManyCalls = 32'768;

class NoSnapshot final : public Snapshot {
 public:
  SequenceNumber sequence() const override { return kNoSequence; }
  uint64_t instant_ms() const override { return 0; }
  bool HasNamespace(NamespaceId) const override { return false; }
};

absl::Status Marked(const absl::Status& status) { return AsStoreStatus(status); }

template <typename T>
absl::StatusOr<T> Marked(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return Marked(result.status());
}

absl::Status CheckOptions(const HbaseStoreOptions& options) {
  if (options.table.empty())
    return absl::InvalidArgumentError("the table of a store over HBase needs a name");
  const bool is_plain = std::all_of(options.table.begin(), options.table.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
  });
  if (!is_plain || options.table.front() == '-' || options.table.front() == '.') {
    return absl::InvalidArgumentError(
        fmt::format("{}: the name of a table of HBase has letters, digits, '_', '-', '.' and, "
                    "behind a namespace of HBase, ':', and begins with a letter, a digit or '_'",
                    options.table));
  }
  return absl::OkStatus();
}

}  // namespace

// --- Opening and closing -------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<HbaseStore>> HbaseStore::Open(std::unique_ptr<HbaseClient> client,
                                                             const HbaseStoreOptions& options) {
  VARVE_RETURN_IF_ERROR(CheckOptions(options));
  VARVE_RETURN_IF_ERROR(client->EnsureTable(TableOf(options.table, {}), options.may_create,
                                            HbaseClient::Deadline::max()));
  std::unique_ptr<HbaseStore> store(
      new HbaseStore(std::move(client), options, std::random_device()()));
  VARVE_RETURN_IF_ERROR(store->Begin());
  return store;
}

HbaseStore::HbaseStore(std::unique_ptr<HbaseClient> client, const HbaseStoreOptions& options,
                       uint32_t writer)
    : context_(std::move(client), options, writer),
      rows_(&context_),
      background_rows_(&context_, /*is_for_background=*/true),
      roster_(&context_, &background_rows_),
      namespaces_(&context_, &rows_, &roster_),
      remover_(&context_, &background_rows_, &roster_, &namespaces_),
      gathered_reads_(&context_),
      reader_(&context_, &gathered_reads_),
      writer_(&context_, &namespaces_) {}

absl::Status HbaseStore::Begin() {
  VARVE_ASSIGN_OR_RETURN(context_.store, rows_.Open({}));
  VARVE_RETURN_IF_ERROR(roster_.Beat());
  const absl::Status tables = CheckTables();
  if (!tables.ok()) roster_.Leave();
  VARVE_RETURN_IF_ERROR(tables);
  beats_ = std::make_unique<PeriodicThread>("varve-beat", context_.options.beat, [this] {
    const absl::Status beat = roster_.Beat();
    if (!beat.ok() && !context_.spaces.IsTrusted()) {
      spdlog::warn("The rows that the servers of table {} share can't be reached: {}",
                   context_.options.table, std::string(beat.message()));
    }
  });
  removals_ = std::make_unique<PeriodicThread>("varve-remover", 10 * context_.options.beat, [this] {
    YieldToForeground();
    const absl::Status step = remover_.Step([this] { return context_.operations.IsClosed(); });
    if (!step.ok())
      spdlog::info("The removal of rows that nobody sees any more goes on later: {}",
                   std::string(step.message()));
  });
  return absl::OkStatus();
}

// A table that is away or missing is told of where it is needed.
absl::Status HbaseStore::CheckTables() {
  std::set<std::string> checked = {context_.options.table};
  const NamespaceList list = context_.spaces.catalog()->List();
  for (const NamespaceDescription& space : list.namespaces) {
    const KeyGrouping& grouping = space.options.grouping;
    if (!checked.insert(TableOf(context_.options.table, grouping).name).second) continue;
    SystemRows table(&context_, /*is_for_background=*/true, grouping);
    const absl::Status status = table.CheckStore(context_.store);
    if (absl::IsFailedPrecondition(status)) return status;
  }
  return absl::OkStatus();
}

absl::Status HbaseStore::Close() {
  if (is_closed_.exchange(true)) return absl::OkStatus();
  BeginClose();
  // What was begun before may be gathered only now.
  do {
    Push().IgnoreError();
  } while (!context_.operations.WaitUntilEmpty(kPauseOfClose));
  if (beats_ == nullptr) return absl::OkStatus();  // it was never open
  beats_->Stop();
  removals_->Stop();
  removals_.reset();
  beats_.reset();
  roster_.Leave();
  return absl::OkStatus();
}

HbaseStore::~HbaseStore() { Close().IgnoreError(); }

// --- Reads ---------------------------------------------------------------------------------------

absl::StatusOr<ReadResult> HbaseStore::Get(const ReadOptions& options, std::string_view key,
                                           std::string* value) {
  return Marked(reader_.Get(options, key, value));
}

absl::Status HbaseStore::MultiGet(const ReadOptions& options,
                                  absl::Span<const std::string_view> keys,
                                  absl::Span<MultiGetResult> results) {
  return Marked(reader_.MultiGet(options, keys, results));
}

std::unique_ptr<Iterator> HbaseStore::NewIterator(const ReadOptions& options,
                                                  std::string_view lower, std::string_view upper,
                                                  SequenceNumber* durable_after) {
  if (durable_after != nullptr) *durable_after = kNoSequence;
  return std::make_unique<HbaseIterator>(&reader_, options, lower, upper);
}

std::shared_ptr<const Snapshot> HbaseStore::GetSnapshot() {
  return std::make_shared<const NoSnapshot>();
}

absl::StatusOr<CountResult> HbaseStore::Count(const ReadOptions& options, std::string_view lower,
                                              std::string_view upper) {
  return Marked(reader_.Count(options, lower, upper));
}

absl::StatusOr<ExplainedRead> HbaseStore::ExplainGet(const ReadOptions& options,
                                                     std::string_view key) {
  const uint64_t begin = context_.options.clock->MonotonicNanos();
  std::string value;
  VARVE_ASSIGN_OR_RETURN(ReadResult read, Get(options, key, &value));
  VARVE_ASSIGN_OR_RETURN(const PlacedSpace place, Marked(context_.spaces.Find(options.space)));
  ExplainedRead explained;
  explained.nanos = context_.options.clock->MonotonicNanos() - begin;
  explained.value_bytes = read.value_size;
  explained.state = read.found                          ? KeyState::kFound
                    : read.read_sequence == kNoSequence ? KeyState::kNeverThere
                    : read.expired                      ? KeyState::kExpired
                                                        : KeyState::kDeleted;
  explained.steps.push_back(
      {.what = fmt::format("asked the region of table {} that holds the key", place.table),
       .nanos = explained.nanos});
  explained.result = std::move(read);
  return explained;
}

bool HbaseStore::IsAway(NamespaceId space, std::string_view key) const {
  if (!context_.client->IsAnyAway()) return false;
  const absl::StatusOr<PlacedSpace> place = context_.spaces.Find(space);
  return place.ok() && context_.client->IsAway(place->table, place->RowOf(key));
}

void HbaseStore::GetAsync(const ReadOptions& options, std::string key, GetDone done) {
  reader_.GetAsync(options, std::move(key),
                   [done = std::move(done)](absl::StatusOr<ReadResult> result, std::string value) {
                     done(Marked(std::move(result)), std::move(value));
                   });
}

void HbaseStore::MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                               MultiGetDone done) {
  reader_.MultiGetAsync(
      options, std::move(keys),
      [done = std::move(done)](const absl::Status& status, std::vector<MultiGetResult> results) {
        done(Marked(status), std::move(results));
      });
}

void HbaseStore::CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                            CountDone done) {
  reader_.CountAsync(options, lower, upper,
                     [done = std::move(done)](absl::StatusOr<CountResult> count) {
                       done(Marked(std::move(count)));
                     });
}

void HbaseStore::ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done) {
  reader_.ReadRangeAsync(options, std::move(range),
                         [done = std::move(done)](absl::StatusOr<RangeSlice> slice) {
                           done(Marked(std::move(slice)));
                         });
}

// --- Writes --------------------------------------------------------------------------------------

absl::StatusOr<CommitResult> HbaseStore::Write(const WriteOptions& options, WriteBatch* batch) {
  return Marked(writer_.Write(options, batch));
}

void HbaseStore::WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) {
  writer_.WriteAsync(options, batch,
                     [done = std::move(done)](absl::StatusOr<CommitResult> committed) {
                       done(Marked(std::move(committed)));
                     });
}

absl::StatusOr<CommitResult> HbaseStore::Update(
    const WriteOptions& options, absl::Span<const std::string_view> keys,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  return Marked(writer_.Update(options, keys, decide));
}

std::unique_ptr<ExclusiveWrite> HbaseStore::BeginExclusiveWrite() {
  return std::make_unique<ExclusiveWrite>();
}

absl::Status HbaseStore::Push() {
  gathered_reads_.Push();
  writer_.Push();
  return absl::OkStatus();
}

// --- Namespaces ----------------------------------------------------------------------------------

absl::StatusOr<NamespaceList> HbaseStore::Namespaces() const {
  return context_.spaces.catalog()->List();
}

bool HbaseStore::HasNamespace(NamespaceId space) const {
  return context_.spaces.catalog()->Find(space) != nullptr;
}

uint64_t HbaseStore::UsualExpiry(NamespaceId space) const {
  const std::shared_ptr<const SpaceCatalog> catalog = context_.spaces.catalog();
  const SpaceCatalog::Space* const known = catalog->Find(space);
  const uint64_t expiry_ms = known == nullptr ? 0 : known->description.options.default_expiry_ms;
  return expiry_ms == 0 ? kNoExpiry : NowMillis() + expiry_ms;
}

std::optional<KeyGrouping> HbaseStore::GroupsOf(NamespaceId space) const {
  const std::shared_ptr<const SpaceCatalog> catalog = context_.spaces.catalog();
  const SpaceCatalog::Space* const known = catalog->Find(space);
  return known == nullptr ? KeyGrouping() : known->description.options.grouping;
}

StoreCapabilities HbaseStore::capabilities() const {
  return {.snapshots = false,
          .atomicity = StoreCapabilities::Atomicity::kWithinGroup,
          .constant_time_clone = false,
          .constant_time_range_delete = false,
          .exact_counts = false,
          .size_estimates = false,
          .quotas = false,
          .swaps = false,
          .history = false,
          .remote = true};
}

// --- Upkeep --------------------------------------------------------------------------------------

Pressure HbaseStore::pressure() const {
  return std::min(1.0, static_cast<double>(context_.client->Statistics().in_flight) / kManyCalls);
}

std::vector<std::pair<std::string, uint64_t>> HbaseStore::Statistics() const {
  const HbaseStatistics client = context_.client->Statistics();
  return {{"writes", ChangeCount()},
          {"hbase_calls", client.calls},
          {"hbase_requests", client.requests},
          {"hbase_retries", client.retries},
          {"hbase_region_lookups", client.region_lookups},
          {"hbase_connections_opened", client.connections_opened},
          {"hbase_bytes_sent", client.bytes_sent},
          {"hbase_bytes_received", client.bytes_received},
          {"hbase_missed_deadlines", client.missed_deadlines},
          {"hbase_in_flight", client.in_flight},
          {"hbase_in_flight_bytes", client.in_flight_bytes},
          {"hbase_wait_nanos", client.wait_nanos},
          {"hbase_guessed_versions", context_.guesses.guesses()},
          {"hbase_wrong_guesses", context_.guesses.wrong_guesses()},
          {"hbase_removed_rows", remover_.removed_rows()},
          {"hbase_is_remover", remover_.is_elected() ? 1u : 0u},
          {"hbase_trusts_namespaces", context_.spaces.IsTrusted() ? 1u : 0u},
          {"hbase_floor", context_.clock.floor()}};
}

StoreObservation HbaseStore::Observe() const {
  StoreObservation seen;
  seen.figures = Statistics();
  return seen;
}

}  // namespace varve
