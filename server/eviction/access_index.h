// The access index is the order in which keys are evicted, on disk, in a store of its own in the
// directory `access` of the data directory. It holds, by the namespace's id:
//
//   'a' space hash            -> when the key with this hash was last read (milliseconds since the
//                                epoch), and its count of uses
//   'o' space epoch rank key  -> nothing: an entry of the order. Of each key with an entry there is
//                                one whose rank is not above the true rank of the key
//                                (server/eviction/key_rank.h), but for a key that could not be
//                                read when its turn came, and, by kTtl, for one that was given
//                                less time, until a walk adds an entry for it
//   's' space                 -> the epoch in force, the rule that its ranks obey, and the version
//                                of the data up to which all keys have entries
//
// Numbers are big-endian. Being a store of its own, the index costs the data's files and log
// nothing: backups, followers, feeds and snapshots do not know it. What is lost of it, or all of
// it, costs the order of evictions and never data: keys without an entry are found again by their
// versions (server/eviction/space_order.h). Its writes are handed to the kernel at once and synced
// by nobody, so they survive the end of the process.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "varve/namespace.h"
#include "varve/storage_engine.h"
#include "varve/types.h"
#include "varve/write_batch.h"

namespace varve {

// When a key was last read, and how much it is used (server/eviction/key_rank.h).
struct KeyAccess {
  uint64_t at_ms = 0;  // milliseconds since the epoch; 0: not known
  uint8_t uses = 0;

  bool known() const { return at_ms != 0; }
};

struct OrderEntry {
  NamespaceId space = kDefaultNamespace;
  uint64_t rank = 0;
  std::string index_key;  // with the key at its end
  size_t key_offset = 0;

  std::string_view key() const { return std::string_view(index_key).substr(key_offset); }
};

// The index knows this of a namespace as a whole.
struct SpaceRecord {
  uint32_t epoch = 0;
  EvictionRule rule;
  SequenceNumber walked = kNoSequence;  // every key of this version or an older one has an entry
};

class AccessIndex {
 public:
  // The memory that an index may take, without the least below.
  static constexpr uint64_t kMemory = 32u << 20;
  static constexpr uint64_t kLeastMemory = 4u << 20;

  // Opens the index in `directory`, or makes an empty one. One that is damaged is removed, and an
  // empty one made.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<AccessIndex>> Open(
      const std::string& directory, uint64_t memory, FileSystem* file_system);
  // Removes what is in `directory`, and makes an empty index.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<AccessIndex>> OpenAnew(
      const std::string& directory, uint64_t memory, FileSystem* file_system);
  // Returns whether the index should begin anew: a read has found damage, three reads have failed
  // since the last one that gave an order, or its log has failed, which is for good.
  // The order can be made again from the data.
  bool is_damaged() const { return is_damaged_.load(std::memory_order_relaxed); }

  // Stores in `*accesses` what is known of each of the hashes.
  [[nodiscard]] absl::Status FindAccesses(NamespaceId space, absl::Span<const uint64_t> hashes,
                                          std::vector<KeyAccess>* accesses) const;
  // Returns the first entries, at most `most`, of the namespace's order whose place is `from` or
  // behind it. `from` is an index key; empty: the beginning.
  [[nodiscard]] absl::StatusOr<std::vector<OrderEntry>> ReadOrder(NamespaceId space, uint32_t epoch,
                                                                  std::string_view from,
                                                                  size_t most) const;
  // Returns how many of the entries of orders, index keys, are not there.
  [[nodiscard]] absl::StatusOr<uint64_t> CountMissing(absl::Span<const std::string> entries) const;
  // Returns about how many accesses there are to keys of the namespace. Overwritten ones count
  // until a merge has removed them, and the newest ones once they are in segments.
  uint64_t EstimateAccesses(NamespaceId space) const;
  // Returns what was recorded of the namespace; nothing recorded: an empty record.
  [[nodiscard]] absl::StatusOr<SpaceRecord> ReadSpace(NamespaceId space) const;
  // Returns the namespaces of which something is recorded, ascending.
  [[nodiscard]] absl::StatusOr<std::vector<NamespaceId>> ReadSpaces() const;
  // Has the orders begin anew that know of versions behind `newest`, the data's newest one when it
  // was opened. A power cut has taken back those versions, and other writes get them.
  [[nodiscard]] absl::Status ForgetOrdersBehind(SequenceNumber newest);

  // Fill a batch that Commit() writes.
  static void PutAccess(NamespaceId space, uint64_t hash, const KeyAccess& access,
                        WriteBatch* batch);
  static void DeleteAccess(NamespaceId space, uint64_t hash, WriteBatch* batch);
  static std::string OrderKey(NamespaceId space, uint32_t epoch, uint64_t rank,
                              std::string_view key);
  static void PutSpace(NamespaceId space, const SpaceRecord& record, WriteBatch* batch);
  // Remove all accesses of the namespace, the entries of one epoch, or all that is known of it.
  static void DeleteAccesses(NamespaceId space, WriteBatch* batch);
  static void DeleteOrder(NamespaceId space, uint32_t epoch, WriteBatch* batch);
  static void DeleteSpace(NamespaceId space, WriteBatch* batch);

  // Writes the batch, and empties it. On return it survives the end of the process.
  [[nodiscard]] absl::Status Commit(WriteBatch* batch);
  [[nodiscard]] absl::Status Close() { return store_->Close(); }

 private:
  explicit AccessIndex(std::unique_ptr<StorageEngine> store) : store_(std::move(store)) {}

  // Returns the status of a read, and notes what it tells of.
  absl::Status Checked(absl::Status read) const;
  // Notes why the index should begin anew.
  void NoteDamage(const absl::Status& damage) const;

  const std::unique_ptr<StorageEngine> store_;
  mutable std::atomic<bool> is_damaged_{false};
  mutable std::atomic<int> failed_reads_{0};  // since the last good one of an order
};

}  // namespace varve
