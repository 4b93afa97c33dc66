// The replies of a connection on their way out, in request order. Each has the sequence number that
// must be durable before the client may see it.
//
// Thread-safety: One thread at a time uses an object.
//
// Invariant: The marks cover exactly the bytes.
//
// Thread-safety: One thread at a time uses an object.
//
// Invariant: The marks cover exactly the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "util/base/assert.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class GatedReplies {
 public:
  ByteBuffer& bytes() { return bytes_; }
  const ByteBuffer& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Begins a new batch, see FailBatch(). `inside_reply`: the batch begins with the rest of a reply
  // whose beginning was taken away.
  void BeginBatch(bool inside_reply = false) {
    batch_begin_ = marks_.size();
    inside_reply_ = inside_reply;
  }

  // The bytes written since the last call are `replies` complete replies that wait for
  // `durable_after` (kNoSequence: for nothing). With no replies: part of one that goes on.
  void Mark(SequenceNumber durable_after, uint32_t replies);

  // Drops what was written behind the first `size` bytes and has no mark yet.
  void Unwrite(size_t size) {
    VARVE_ASSERT(marked_ <= size && size <= bytes_.size());
    bytes_.Truncate(size);
  }

  // Moves all of `other` behind what is here.
  void Take(GatedReplies* other);

  // Bytes at the front that may leave when `durable` is durable.
  size_t Releasable(SequenceNumber durable) const;
  // The gate of the first reply that may not leave then (kNoSequence: there is none).
  SequenceNumber NextGate(SequenceNumber durable) const;

  // `bytes` bytes of the front have left.
  void Consume(size_t bytes);

  // Puts the error reply "-<error>" in the place of every reply that waits for more than `durable`.
  // False when one of them is not here as a whole (its end is still to come, or its beginning has
  // left or may leave), so that the connection must close.
  [[nodiscard]] bool FailAbove(SequenceNumber durable, std::string_view error);
  // Does the same for every reply since BeginBatch().
  [[nodiscard]] bool FailBatch(std::string_view error);

  void ShrinkAbove(size_t keep) { bytes_.ShrinkAbove(keep); }
  void Clear();

 private:
  struct Stretch {
    size_t bytes;
    SequenceNumber durable_after;
    uint32_t replies;
    bool continues;  // begins with the rest of a reply
  };

  bool Fail(size_t first, SequenceNumber durable, std::string_view error);

  ByteBuffer bytes_;
  std::vector<Stretch> marks_;  // from head_ on
  size_t head_ = 0;
  size_t batch_begin_ = 0;
  size_t marked_ = 0;          // bytes covered by marks
  bool inside_reply_ = false;  // the last mark ended inside a reply
};

}  // namespace varve
