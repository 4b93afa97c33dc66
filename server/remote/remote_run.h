// A remote run asks a store that is on other machines for neighbouring requests of one connection,
// all at once, and no thread waits for the answers: GET, MGET and EXISTS become one read of several
// keys, each SET a write of its own, and a deletion reads its keys and then deletes those that are
// there, on the condition that nobody has written them since: the keys of one group together, each
// group by itself. Of RANGE and PREFIX those with a small LIMIT are asked for, each as one slice;
// where that turns out to be more than kMaxRangeBytes, the run ends before the request, which is
// left to a thread that may wait. What the run asked for is answered in the order of the requests.
//
// Requests of a run happen side by side, so a run ends before a request that reads a key which the
// run writes, or writes one which it reads; a range counts as all keys. Of several SETs of one key
// the last one alone is sent, where their values are so small that no store refuses one: nobody can
// tell that the others happened just before it. A run also ends where requests begin, or end, whose
// keys are away (StoreReads::IsAway), so that the others do not wait for these.
//
//   std::shared_ptr<RemoteRun> run = RemoteRun::Take(server, &cursor);
//   do {
//     run->Send(done);             // `done` is called once all that was asked is answered
//   } while (!run->Answer(&replies));
//
// Thread-safety: one I/O thread uses a run; the store answers on any thread. Between Send() and
// `done` the run belongs to the store's threads, and only Abandon() may be called.
// Invariants: the values that a run holds have at most kMaxBytes together and one value more, but
// those of an MGET's keys; those of its ranges have at most kMaxBytes, and a value more each. No
// write is sent twice, but a deletion whose condition failed, until the deadline of a command.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/pending_replies.h"
#include "server/execution/command_context.h"
#include "server/execution/request_run.h"
#include "server/execution/server_state.h"
#include "server/requests/command.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

class RemoteRun : public std::enable_shared_from_this<RemoteRun> {
 public:
  static constexpr size_t kMaxRequests = 1024;
  static constexpr size_t kMaxKeys = 4096;
  // Bytes of values that are asked for at a time, and the largest value among them; a larger one is
  // asked for by itself.
  static constexpr size_t kMaxBytes = 1u << 20;
  // Entries and bytes of a range, and ranges, whose bytes are kMaxBytes together.
  static constexpr int64_t kMaxRangeEntries = 1024;
  static constexpr size_t kMaxRangeBytes = 64u << 10;
  static constexpr size_t kMaxRanges = kMaxBytes / kMaxRangeBytes;
  // Times that a deletion finds its keys written by others, and keys that it deletes together.
  static constexpr int kMaxTries = 100;
  static constexpr size_t kMostTogether = 64;
  // The bytes of a value that every store takes.
  static constexpr size_t kSmallValue = 1024;

  // Takes requests from the front of `cursor`. Null: the first one has to be executed by a thread
  // that may wait. Requires: both outlive the run, and the batch stays in place as long.
  static std::shared_ptr<RemoteRun> Take(ServerState* server, BatchCursor* cursor);

  RemoteRun(ServerState* server, BatchCursor* cursor);
  RemoteRun(const RemoteRun&) = delete;
  RemoteRun& operator=(const RemoteRun&) = delete;

  // Returns how many requests are not answered yet.
  size_t size() const { return requests_.size() - next_; }
  // Returns whether their keys were away when the run took them.
  bool is_away() const { return is_away_; }
  // Returns the bytes that its ranges take together, apart from a value more each.
  size_t range_bytes() const { return ranges_.size() * kMaxRangeBytes; }

  // Asks the store for what the next requests need. `done` is called once all of it is answered, on
  // any thread or inside the call. The store is to be pushed afterwards.
  void Send(std::function<void()> done) ABSL_LOCKS_EXCLUDED(mutex_);
  // `done` is not called any more, and is destroyed. The run must not be answered.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes the replies that are complete, and moves the cursor. Returns whether all requests are
  // answered; if not, the run is to be sent again. The thread that called `done` is through with it
  // when this returns. Requires: what was sent is answered.
  [[nodiscard]] bool Answer(PendingReplies* replies) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A key that is read.
  struct Read {
    enum class State : uint8_t { kUnasked, kAsked, kAnswered };
    std::string_view key;
    bool without_value = false;
    bool alone = false;  // its value is too large to be read with others
    State state = State::kUnasked;
    MultiGetResult answer;
  };
  // A SET or, of a deletion, keys of one group.
  struct Write {
    WriteBatch batch;
    size_t first_read = 0;  // of the keys of a deletion
    size_t reads = 0;       // their number
    bool sent = false;
    bool answered = false;
    int tries = 0;
    absl::StatusOr<CommitResult> committed = CommitResult();
  };
  // The keys of a RANGE or PREFIX, all that its LIMIT leaves.
  struct RangeRead {
    StoreReads::RangeRequest wanted;
    bool keys_only = false;
    SequenceNumber newer_than = kNoSequence;
    bool asked = false;
    absl::StatusOr<RangeSlice> slice = RangeSlice();

    bool IsWhole() const { return !slice->more || slice->entries.size() == wanted.max_entries; }
  };
  struct Request {
    size_t place;         // in the batch
    size_t first_read;    // of its keys
    size_t reads;         // their number
    size_t first_write;   // of a SET, or of the groups of a deletion
    size_t writes = 0;    // the number of these groups
    size_t answered = 0;  // elements of an MGET
    size_t range = 0;     // of a RANGE or PREFIX
  };
  // How the run uses a key.
  struct Use {
    bool read = false;
    bool deleted = false;
    bool is_large = false;  // its value is, of the last SET
    size_t write = kNone;   // of a SET
  };
  static constexpr size_t kNone = SIZE_MAX;

  Arguments ArgumentsOf(const Request& request) const;
  CommandKind KindOf(const Request& request) const;

  // Takes one more request. False: the run ends before it.
  bool Add(size_t place);
  bool AddReads(Request* request, Arguments keys, bool without_value);
  bool AddSet(Request* request, std::string_view key, std::string_view value);
  bool AddDeletion(Request* request, Arguments keys);
  bool AddRange(Request* request, CommandKind kind, Arguments arguments);
  // Divides the keys of a deletion, which were added in their order, among its writes.
  void DivideDeletion(Request* request);

  void AskFor(std::vector<size_t> reads, bool without_value);
  void AskForOne(size_t read, size_t max_value_bytes);
  void AskForReads();
  void AskForRanges();
  void SendWrites();
  void SendWrite(Write* write);
  // Returns whether a part of a deletion has something to send, which then is in its batch.
  bool FillDeletion(Write* write);
  absl::Span<Read> ReadsOf(const Write& write);
  // An answer has come.
  void NoteAnswers(absl::Span<const size_t> reads, const absl::Status& status,
                   absl::Span<MultiGetResult> answers);
  void Came() ABSL_LOCKS_EXCLUDED(mutex_);

  // Answer the next request. False: something is missing.
  bool AnswerNext(CommandContext* context);
  bool AnswerGet(CommandContext* context, const Request& request);
  bool AnswerMGet(CommandContext* context, Request* request);
  bool AnswerExists(CommandContext* context, const Request& request);
  bool AnswerSet(CommandContext* context, const Request& request);
  bool AnswerDeletion(CommandContext* context, const Request& request);
  bool AnswerRange(const Request& request);
  // Has the command of a range answer from its slice. False: it has not come to its end.
  bool Produce(CommandContext* context, const Request& request, RangeSlice slice);
  // Returns whether it is known what became of the keys of a part of a deletion.
  bool IsSettled(Write* write);
  void TellOfWrite(std::string_view key);
  void EndReply(CommandContext* context, size_t begin);

  ServerState* const server_;
  BatchCursor* const cursor_;
  const NamespaceId space_;
  bool is_away_ = false;
  std::vector<Request> requests_;
  std::vector<Read> reads_;
  std::vector<Write> writes_;
  std::vector<RangeRead> ranges_;
  absl::flat_hash_map<std::string_view, Use> uses_;
  size_t next_ = 0;            // request that is not answered
  bool inside_reply_ = false;  // a part of the reply to it was written
  std::chrono::steady_clock::time_point sent_at_{};
  // The deadline of the calls for the next answer: that of a request, or an element of an MGET. It
  // is set anew when that is sent for, so that a client which takes its replies slowly misses none.
  StoreWaits::Time deadline_ = StoreWaits::Time::max();
  std::atomic<size_t> left_{0};  // answers that are missing
  absl::Mutex mutex_;
  std::function<void()> done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
