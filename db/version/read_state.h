// Everything a reader looks at, as of one moment (the field's superversion): the write buffers and
// the segments. Immutable but for the active buffer's growth; replaced as a whole when any part
// changes.
#pragma once

#include <memory>
#include <vector>

#include "db/format/range_tombstone.h"
#include "db/namespaces/namespace_table.h"
#include "db/version/version.h"
#include "db/write_buffer/write_buffer.h"

namespace varve {

struct ReadState : std::enable_shared_from_this<ReadState> {
  std::shared_ptr<WriteBuffer> active;
  std::vector<std::shared_ptr<WriteBuffer>> full;  // waiting for their flush, newest first
  std::shared_ptr<const RangeTombstoneList> buffered_tombstones =
      std::make_shared<RangeTombstoneList>();  // of all buffers
  std::shared_ptr<const Version> version;
  NamespaceTable namespaces;
  SequenceNumber namespaces_changed = kNoSequence;  // when the table became what it is
  // Of which this one is a part; null: it is a whole itself.
  std::shared_ptr<const ReadState> whole;

  // Where what a clone stands on is read.
  const ReadState& of_bases() const { return whole == nullptr ? *this : *whole; }

  // The newest range tombstone not newer than `at` that covers the key; kNoSequence if none.
  SequenceNumber CoveringSequence(std::string_view tree_key, SequenceNumber at) const {
    SequenceNumber covering = kNoSequence;
    if (!buffered_tombstones->empty())
      covering = buffered_tombstones->CoveringSequence(tree_key, at);
    if (!version->range_tombstones().empty()) {
      covering = std::max(covering, version->range_tombstones().CoveringSequence(tree_key, at));
    }
    return covering;
  }
};

}  // namespace varve
