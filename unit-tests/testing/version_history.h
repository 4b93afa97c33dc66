// Everything that was ever written, kept whole: what every reader at every point in time must find.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "db/format/range_tombstone.h"
#include "unit-tests/testing/vector_iterator.h"

namespace varve::testing {

struct VersionHistory {
  std::vector<TestRecord> records;
  std::vector<RangeTombstone> tombstones;

  // The newest tombstone that covers `key` for a reader at `at`.
  SequenceNumber Covering(const std::string& key, SequenceNumber at) const {
    SequenceNumber newest = kNoSequence;
    for (const RangeTombstone& tombstone : tombstones) {
      if (tombstone.sequence <= at && tombstone.begin <= key && key < tombstone.end)
        newest = std::max(newest, tombstone.sequence);
    }
    return newest;
  }

  // The value that a reader at `at` finds; "(none)" if there is none.
  std::string Read(const std::string& key, SequenceNumber at) const {
    const TestRecord* newest = nullptr;
    for (const TestRecord& record : records) {
      if (record.key == key && record.sequence <= at &&
          (newest == nullptr || record.sequence > newest->sequence))
        newest = &record;
    }
    if (newest == nullptr || newest->kind == RecordKind::kTombstone ||
        Covering(key, at) > newest->sequence)
      return "(none)";
    return newest->value;
  }
};

}  // namespace varve::testing
