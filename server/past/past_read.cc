#include "server/past/past_read.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/past/past_store.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

// The context of a handler that works on the past. What it is told goes on to `outer`.
class PastContext {
 public:
  PastContext(CommandContext* outer, PastStore* store)
      : outer_(*outer), inner_(&outer->server, &outer->client, outer->reply.buffer(), store) {
    inner_.reply.set_protocol(outer->reply.protocol());
    inner_.set_max_value_bytes(outer->max_value_bytes());
    inner_.CountTo(outer);
  }
  ~PastContext() {
    outer_.DependOn(inner_.TakeDurableAfter());
    if (inner_.needs_pool()) outer_.MoveToPool();
    VARVE_ASSERT(!inner_.submitted());
  }
  PastContext(const PastContext&) = delete;
  PastContext& operator=(const PastContext&) = delete;

  CommandContext& inner() { return inner_; }

 private:
  CommandContext& outer_;
  CommandContext inner_;
};

// A reply of the past that is produced in slices.
class PastStream final : public ReplyStream {
 public:
  PastStream(std::unique_ptr<PastStore> store, std::unique_ptr<ReplyStream> stream)
      : store_(std::move(store)), stream_(std::move(stream)) {}

  Progress Produce(CommandContext& context, size_t budget) override {
    PastContext past(&context, store_.get());
    return stream_->Produce(past.inner(), budget);
  }
  void Rest() override { stream_->Rest(); }

 private:
  const std::unique_ptr<PastStore> store_;
  const std::unique_ptr<ReplyStream> stream_;
};

}  // namespace

absl::StatusOr<PastVersion> FindPastVersion(const Store& store, NamespaceId space,
                                            const PastPoint& point) {
  if (point.kind == PastPoint::Kind::kVersion) return PastVersion{point.number, std::nullopt};
  const uint64_t now_ms = store.NowMillis();
  uint64_t instant_ms = point.number;
  if (point.kind == PastPoint::Kind::kAgo) {
    instant_ms = now_ms - std::min(now_ms, point.number);
  } else if (instant_ms > now_ms) {
    return absl::OutOfRangeError("this time has not come yet");
  }
  const absl::StatusOr<SequenceNumber> version = store.VersionAt(instant_ms);
  if (absl::IsNotFound(version.status())) {
    VARVE_ASSIGN_OR_RETURN(const SequenceNumber first, store.FirstVersion(space));
    return Trimmed(first);
  }
  VARVE_RETURN_IF_ERROR(version.status());
  return PastVersion{*version, instant_ms};
}

absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotOf(const Store& store, NamespaceId space,
                                                           const PastPoint& point) {
  VARVE_ASSIGN_OR_RETURN(const PastVersion past, FindPastVersion(store, space, point));
  return store.SnapshotAt(space, past.version, past.instant_ms);
}

absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotOf(CommandContext& context,
                                                           const PastPoint& point) {
  return SnapshotOf(*context.server.store, context.space(), point);
}

void ExecuteAt(CommandContext& context, const PastPoint& point, CommandHandler handler,
               Arguments arguments) {
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = SnapshotOf(context, point);
  if (!snapshot.ok()) return context.Fail(snapshot.status());
  auto store = std::make_unique<PastStore>(context.server.store, *std::move(snapshot));
  std::unique_ptr<ReplyStream> stream;
  {
    PastContext past(&context, store.get());
    handler(past.inner(), arguments);
    stream = past.inner().TakeStream();
  }
  if (stream != nullptr)
    context.Stream(std::make_unique<PastStream>(std::move(store), std::move(stream)));
}

void ExecuteAtSuffix(CommandContext& context, CommandHandler handler, size_t fewest_arguments,
                     Arguments arguments) {
  const std::optional<size_t> before = FindPastSuffix(arguments);
  if (!before || *before < fewest_arguments) [[likely]]
    return handler(context, arguments);
  // A key that was written often is searched for through all its newer versions.
  if (context.max_value_bytes() != SIZE_MAX) return context.MoveToPool();
  const absl::StatusOr<PastPoint> point = ParsePastPoint(arguments.subspan(*before + 1));
  if (!point.ok()) return context.Fail(point.status());
  ExecuteAt(context, *point, handler, arguments.first(*before));
}

}  // namespace varve
