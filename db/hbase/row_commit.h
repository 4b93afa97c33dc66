// A row commit writes rows of one table, on the condition that they are as its caller wants them
// and as it has found them itself.
//
// A row that has no condition of the caller's is written on the condition that it holds what this
// server believes it to hold (db/hbase/guessed_versions.h), or is read first, and written on the
// condition that it is unchanged. Where the guess was wrong, or another writer came between, the
// commit reads the row and tries again until its deadline. So the versions of a row ascend.
// Deletes are never guessed, so that a delete of a key that is not there writes nothing. A
// condition of the caller's fails for good (Aborted).
//
// Thread-safety: One thread begins a commit; the client's threads go on with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/row_codec.h"
#include "db/hbase_rpc/hbase_client.h"
#include "varve/types.h"

namespace varve {

// An intent says what is to become of one row.
struct RowIntent {
  enum class Kind : uint8_t { kCheckOnly, kPut, kDelete };

  std::string row;
  Kind kind = Kind::kCheckOnly;
  std::string value;
  std::string metadata;
  uint64_t expiry_ms = kNoExpiry;
  // The version that the caller wants the row to have, a tombstone's included; kNoSequence: there
  // must be no row. Nothing: any.
  std::optional<SequenceNumber> required;
};

class RowCommit : public std::enable_shared_from_this<RowCommit> {
 public:
  // The status of the rows, in the order of the intents, and the versions that they were written
  // with; one status and one version for all of them if they are written together.
  using Done = std::function<void(const std::vector<absl::Status>& statuses,
                                  const std::vector<SequenceNumber>& versions)>;

  // Writes all rows or none. Requires: they are of one group and distinct.
  static void Together(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                       HbaseClient::Deadline deadline, Done done);
  // Writes each row by itself. Requires: they are distinct.
  static void Each(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                   HbaseClient::Deadline deadline, Done done);

  // For make_shared alone.
  RowCommit(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
            bool is_together, HbaseClient::Deadline deadline, Done done);

 private:
  // A guess or a reading of a row, as far as there was one.
  struct Found {
    enum class How : uint8_t {
      kUnread,
      kGuessed,
      kRead,
      kStale,  // it has to be read again
    };
    How how = How::kUnread;
    std::string identity;  // the beginning of its cell; empty: there is no row
    SequenceNumber version = kNoSequence;
    bool is_gone = true;
  };

  void Guess();
  void Try();
  void TakeRead(const std::vector<size_t>& read, const std::vector<HbaseClient::RowValue>& cells);
  absl::Status Note(size_t index, const HbaseClient::RowValue& read);
  void Send();
  bool HasNothingToDo(size_t index) const;
  // Returns whether the row gets a new cell; else it is only compared.
  bool Writes(size_t index) const;
  HbaseRowWrite WriteOf(size_t index, SequenceNumber version) const;
  SequenceNumber SeenVersion(size_t index) const;
  void TakeOutcome(size_t index, bool was_right);
  void SendTogether();
  void SendEach();
  void TakeTogether(const absl::Status& status);
  void TakeReadAgain(const std::vector<HbaseClient::RowValue>& cells);
  void TakeEach(const std::vector<size_t>& sent, const std::vector<absl::Status>& statuses);
  bool IsPastDeadline() const;
  absl::Status GaveUp() const;
  void Finish();
  void FinishWith(const absl::Status& status);

  HbaseContext* const context_;
  const std::string table_;
  const std::vector<RowIntent> intents_;
  const bool is_together_;
  const Done done_;
  const HbaseClient::Deadline deadline_;
  std::vector<GuessedVersions::Name> names_;  // by intent, as the next one
  std::vector<Found> found_;
  std::vector<size_t> open_;  // the intents that are not settled yet
  std::vector<absl::Status> statuses_;
  std::vector<SequenceNumber> versions_;
};

}  // namespace varve
