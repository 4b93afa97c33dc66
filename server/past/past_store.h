// The past store shows one namespace as it was at a snapshot to handlers that know nothing of the
// past. Reads that name no snapshot of their own get this one; writes are refused.
//
// Thread-safety: as the store below.
// Requires: the store below outlives it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "varve/store.h"

namespace varve {

class PastStore final : public StoreContents {
 public:
  // Requires: `below` gave the snapshot.
  PastStore(StoreContents* below, std::shared_ptr<const Snapshot> snapshot)
      : below_(*below), snapshot_(std::move(snapshot)) {}

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override {
    return below_.Get(InThePast(options), key, value);
  }
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override {
    return below_.MultiGet(InThePast(options), keys, results);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override {
    return below_.NewIterator(InThePast(options), lower, upper, durable_after);
  }
  std::shared_ptr<const Snapshot> GetSnapshot() override { return snapshot_; }
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override {
    return below_.Count(InThePast(options), lower, upper);
  }
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override {
    return below_.ExplainGet(InThePast(options), key);
  }
  // Returns the instant that is read: what expires later is still there.
  uint64_t NowMillis() const override { return snapshot_->instant_ms(); }

  // --- Writes fail with FailedPrecondition -------------------------------------------------------
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  // Nobody writes to the past, so there is nobody to wait for.
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;

  // --- Namespaces: those of the present ----------------------------------------------------------
  absl::StatusOr<NamespaceList> Namespaces() const override { return below_.Namespaces(); }
  bool HasNamespace(NamespaceId space) const override { return snapshot_->HasNamespace(space); }
  uint64_t UsualExpiry(NamespaceId space) const override { return below_.UsualExpiry(space); }

  StoreCapabilities capabilities() const override { return below_.capabilities(); }
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override {
    return below_.GroupsOf(space);
  }

 private:
  ReadOptions InThePast(ReadOptions options) const {
    if (options.snapshot == nullptr) options.snapshot = snapshot_.get();
    return options;
  }

  StoreContents& below_;
  const std::shared_ptr<const Snapshot> snapshot_;
};

}  // namespace varve
