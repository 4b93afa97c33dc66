// Gathered reads are reads of single rows that wait for Push() and go out together: a region's
// server answers many rows of one request at less cost than as many requests. Reads of different
// regions do not wait for each other.
//
// Thread-safety: All functions are thread-safe. Answers come on a thread of the client.
// Requires: The context outlives every answer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/hbase/hbase_context.h"

namespace varve {

class GatheredReads {
 public:
  // The row's cell; nothing: there is no row.
  using Done = std::function<void(HbaseClient::RowValue cell)>;

  explicit GatheredReads(const HbaseContext* context) : context_(*context) {}

  // Reads the row after the next Push(), or at once if many wait. One whose deadline is early
  // (HbaseContext::IsEarly) is read at once, by itself.
  void Add(const std::string& table, std::string row, HbaseClient::Deadline deadline, Done done);
  void Push();

 private:
  struct Read {
    std::string row;
    Done done;
  };
  struct Table {
    std::string name;
    std::vector<Read> reads;
  };

  void Send(const std::string& table, std::vector<Read> reads);
  void SendPart(const std::string& table, const std::shared_ptr<std::vector<Read>>& reads,
                const HbaseClient::Part& part, HbaseClient::Deadline deadline);

  const HbaseContext& context_;
  absl::Mutex mutex_;
  std::vector<Table> gathered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
