// A super version is what readers see at one moment: the write buffers, the segments and the
// namespaces. When any part changes, SuperVersions replaces it as a whole
// (db/version/super_versions.h).
//
// Thread-safety: immutable except for the growth of the active buffer, which is thread-safe itself.
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
  SequenceNumber namespaces_changed = kNoSequence;  // by which write the table changed last
  // The super version of which this one is a part, as in a count of some layers; null if this one
  // is whole itself.
  std::shared_ptr<const SuperVersion> whole;

  // Returns the super version in which readers look up the parents of clones.
  const SuperVersion& for_parents() const { return whole == nullptr ? *this : *whole; }

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
