// The pending replies of a connection are the encoded replies that have not left yet, in request
// order. Each has a durable-after sequence, which must be durable before the client may see it.
//
// Thread-safety: one thread at a time uses an object.
// Invariants: once Mark() has returned, the marks cover exactly the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "util/base/assert.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class PendingReplies {
 public:
  ByteBuffer& bytes() { return bytes_; }
  const ByteBuffer& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Begins a new batch, see FailBatch(). `inside_reply` says that the batch begins with the rest of
  // a reply whose beginning was taken away.
  void BeginBatch(bool inside_reply = false) {
    batch_begin_ = marks_.size();
    inside_reply_ = inside_reply;
  }

  // Marks the bytes written since the last call as `replies` complete replies that wait for
  // `durable_after` (kNoSequence: for nothing). `replies` is 0 for a part of a reply that goes on.
  void Mark(SequenceNumber durable_after, uint32_t replies);

  // Drops the bytes behind the first `size`. Requires: they have no mark yet.
  void Unwrite(size_t size) {
    VARVE_ASSERT(marked_ <= size && size <= bytes_.size());
    bytes_.Truncate(size);
  }

  // Moves all replies of `other` behind those that are here.
  void Take(PendingReplies* other);

  // Returns how many bytes at the front may leave when `durable` is durable.
  size_t Releasable(SequenceNumber durable) const;
  // Returns the durable-after sequence of the first reply that may not leave then; kNoSequence if
  // there is none.
  SequenceNumber NextDurableAfter(SequenceNumber durable) const;

  // Removes `bytes` bytes from the front: they have left.
  void Consume(size_t bytes);

  // Replaces every reply that waits for a sequence above `durable` by the error reply "-<error>".
  // Returns false if one of them is not here as a whole: its end is still to come, or its beginning
  // has left or may leave. Then the connection must close.
  [[nodiscard]] bool FailAbove(SequenceNumber durable, std::string_view error);
  // Does the same for every reply since BeginBatch().
  [[nodiscard]] bool FailBatch(std::string_view error);

  void ShrinkAbove(size_t keep) { bytes_.ShrinkAbove(keep); }
  void Clear();

 private:
  struct MarkedReplies {
    size_t bytes;
    SequenceNumber durable_after;
    uint32_t replies;
    bool continues;  // begins with the rest of a reply
  };

  bool Fail(size_t first, SequenceNumber durable, std::string_view error);

  ByteBuffer bytes_;
  std::vector<MarkedReplies> marks_;  // from head_ on
  size_t head_ = 0;
  size_t batch_begin_ = 0;
  size_t marked_ = 0;          // bytes covered by marks
  bool inside_reply_ = false;  // the last mark ended inside a reply
};

}  // namespace varve
