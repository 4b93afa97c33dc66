// Value recompression is the value separation of a merge that the user asked for (COMPACT). Values
// that were kept apart before their namespace's compression was set, or set otherwise, lie in log
// files and value files as they were then, and no merge looks at them by itself. This one writes
// them into new value files as the compression policy says now; the files that they leave go when
// nothing points into them any more (db/compaction/value_collection.h).
//
//   1. A plain value is compressed if that saves enough; else it stays where it is.
//   2. A compressed value whose method is another one than the policy's is written anew, plain if
//      the policy says so. The level plays no part: nothing on disk tells it.
//   3. Values that need nothing cost a read to find that out. So once 64 of a kind in a row needed
//      nothing, one of 64 is looked at. A kind is the plain or the compressed values of one
//      generation in one file, which a flush writes in one way.
//   4. A value that is damaged stays where it is, and so do all values in a file in which damage
//      was met: `verify` and reads name them.
//
// Thread-safety: one job on one thread uses an object.
#pragma once

#include <memory>

#include "db/compaction/value_separation.h"
#include "db/namespaces/compression_policy.h"

namespace varve {

std::unique_ptr<ValueSeparation> NewValueRecompression(ValueFileWriter::Options files,
                                                       CompressionPolicy compression);

}  // namespace varve
