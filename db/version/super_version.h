// A super version is what readers see as of one moment: the write buffers, the segments and the
// namespaces.
//
// Thread-safety: it is immutable but for the growth of the active buffer, which is thread-safe
// itself. It is replaced as a whole when any part changes (db/version/super_versions.h).
#pragma once

#include <memory>
#include <vector>

#include "db/format/range_tombstone.h"
#include "db/namespaces/namespace_table.h"
#include "db/version/version.h"
#include "db/write_buffer/write_buffer.h"

namespace varve {

struct SuperVersion : std::enable_shared_from_this<SuperVersion> {
  std::shared_ptr<WriteBuffer> active;
  std::vector<std::shared_ptr<WriteBuffer>> full;  // waiting for their flush, newest first
  // The range tombstones in all write buffers.
  std::shared_ptr<const RangeTombstoneList> buffered_tombstones =
      std::make_shared<RangeTombstoneList>();
  std::shared_ptr<const Version> version;
  NamespaceTable namespaces;
  SequenceNumber namespaces_changed = kNoSequence;  // when the table became what it is
  // The super version of which this one is a part; null: it is a whole itself.
  std::shared_ptr<const SuperVersion> whole;

  // Returns the super version in which the parents of clones are read.
  const SuperVersion& of_bases() const { return whole == nullptr ? *this : *whole; }

  // Returns the sequence of the newest range tombstone not newer than `at` that covers the key;
  // kNoSequence if there is none.
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
