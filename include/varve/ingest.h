// A bulk ingest adds many sorted keys in one step. The store builds segments as the keys arrive, so
// the keys are written once, past the log and the write buffers; the commit makes all of them
// visible together, under one version.
//
//   auto ingest = BeginIngest(store, {.replace = IngestRange{"user:", "user;"}});
//   for (const auto& [key, value] : sorted) status = (*ingest)->Add(key, value);
//   auto result = (*ingest)->Commit();  // result->sequence: the version; durable by now
//
// Until the commit nobody sees anything of it, and writers are not slowed down. What was added is
// lost with the Ingest or with the process; the next opening of the store removes its files. A
// crash during the commit leaves all of it or nothing.
//
// Thread-safety: one thread at a time uses an ingest.
// Requires: the store outlives its ingests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "varve/options.h"
#include "varve/read_result.h"
#include "varve/types.h"

namespace varve {

// The keys of [begin, end); an empty `end` means to the end of the namespace.
struct IngestRange {
  std::string begin;
  std::string end;
};

struct IngestOptions {
  // It must exist, and give its keys no usual expiry: ingested keys don't expire.
  NamespaceId space = kDefaultNamespace;
  // The commit also deletes what the range holds, in the same step, so that readers see its old
  // keys or the new ones and never a mixture. Every key that is added must lie in it.
  std::optional<IngestRange> replace = std::nullopt;
};

struct IngestPair {
  std::string_view key;
  std::string_view value;
};

struct IngestProgress {
  uint64_t keys = 0;
  uint64_t bytes = 0;  // of keys and values
};

class Ingest {
 public:
  // An ingest that was not committed leaves nothing behind.
  virtual ~Ingest() = default;

  // Adds the pairs, all or none. InvalidArgument: a key does not come behind the one before it,
  // lies outside the range that is replaced, or is too long, or a value is; then the ingest is as
  // it was. After any other error it can only be destroyed.
  [[nodiscard]] virtual absl::Status Add(absl::Span<const IngestPair> pairs) = 0;
  [[nodiscard]] absl::Status Add(std::string_view key, std::string_view value) {
    const IngestPair pair{key, value};
    return Add(absl::MakeConstSpan(&pair, 1));
  }

  // Makes everything visible under one version, CommitResult::sequence, and durable. Other writers
  // wait meanwhile, for some milliseconds. An ingest of nothing has the newest version.
  // FailedPrecondition: the namespace was dropped, emptied or swapped since the ingest began.
  // ResourceExhausted: a quota or the limit of the store's data does not allow so much; then
  // Commit() may be called again, but nothing may be added any more. After any other error the
  // ingest has ended; Unavailable: a restart may find it committed.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Commit() = 0;

  virtual IngestProgress progress() const = 0;
};

class Store;

// A store that takes bulk ingests, as the embedded engine does.
class IngestingStore {
 public:
  virtual ~IngestingStore() = default;
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<Ingest>> BeginIngest(
      const IngestOptions& options) = 0;
};

// Begins an ingest. Unimplemented: the store takes none. NoSuchNamespace: there is no such
// namespace. FailedPrecondition: its keys expire by default, or the store's format has no place for
// ingests. InvalidArgument: the range to replace is empty.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Ingest>> BeginIngest(Store* store,
                                                                  const IngestOptions& options);

}  // namespace varve
