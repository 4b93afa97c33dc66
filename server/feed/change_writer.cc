#include "server/feed/change_writer.h"

#include <memory>
#include <string>

#include "server/execution/command_context.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

constexpr size_t kFields = 6;
constexpr size_t kFullFields = 8;

bool HasPrevious(Kind kind) {
  return kind == Kind::kSet || kind == Kind::kDelete || kind == Kind::kExpire ||
         kind == Kind::kExpired || kind == Kind::kEvicted || kind == Kind::kMeta;
}

}  // namespace

void ChangeWriter::WriteOperations(const Change& change,
                                   absl::Span<const ShownOperation> operations, RespWriter* reply) {
  reply->Array(operations.size());
  for (const ShownOperation& shown : operations) {
    const ChangeOperation& operation = *shown.operation;
    reply->Array(full_ ? kFullFields : kFields);
    reply->Bulk(ChangeWord(operation.kind));
    reply->Bulk(SpaceText(operation.space, operation.name));
    shown.has_key ? reply->Bulk(shown.key) : reply->Null();
    shown.has_value ? reply->Bulk(shown.value) : reply->Null();
    reply->Integer(AsInteger(operation.expiry_ms));
    WritePrevious(change, operation, reply);
    if (!full_) continue;
    reply->Bulk(operation.metadata);
    reply->Integer(AsInteger(operation.space));
  }
}

void ChangeWriter::WritePrevious(const Change& change, const ChangeOperation& operation,
                                 RespWriter* reply) {
  if (!with_previous_ || !HasPrevious(operation.kind) || operation.version == kNoSequence)
    return reply->Null();
  // What was removed as its time was over is shown all the same; what another operation replaced
  // after that had no value any more.
  const uint64_t instant_ms = operation.kind == Kind::kExpired ? 1 : change.instant_ms;
  const absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot =
      store_.SnapshotAt(operation.space, operation.version - 1, instant_ms);
  if (!snapshot.ok()) return reply->Null();
  ReadOptions options = NoWaitReadOptions(operation.space);
  options.snapshot = snapshot->get();
  std::string value;
  const absl::StatusOr<ReadResult> read = store_.Get(options, operation.key, &value);
  read.ok() && read->found ? reply->Bulk(value) : reply->Null();
}

}  // namespace varve
