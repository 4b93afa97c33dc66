// What users see of a scan: of each key of a namespace the newest version at one sequence, deleted ones left out.
//
// Not thread-safe. Made by the engine; holds the ReadState it reads.
#pragma once

#include <memory>
#include <string>

#include "db/internal_iterator.h"
#include "db/iterator.h"
#include "db/read_state.h"

namespace varve {

// `records` delivers the versions of all keys, those covered by range tombstones already left out, and reads from `state`.
// Bounds are tree keys: [lower, upper), an empty `upper` meaning no end.
std::unique_ptr<Iterator> NewStoreIterator(std::shared_ptr<const ReadState> state,
                                           std::unique_ptr<InternalIterator> records, SequenceNumber at,
                                           std::string lower, std::string upper);

// Never valid; says why.
std::unique_ptr<Iterator> NewErrorIterator(absl::Status status);

}  // namespace varve
