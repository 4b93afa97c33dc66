// What the witnesses of a soak share: where the servers are, what the feed told, what is wrong, and
// the end.
//
// Thread-safety: ports do not change while a thread looks; the other parts say for themselves.
#pragma once

#include <cstdint>
#include <string>

#include "absl/synchronization/notification.h"
#include "unit-tests/prove/soak/feed_mirror.h"
#include "unit-tests/prove/soak/findings.h"

namespace varve::prove {

// The namespaces of a soak.
inline constexpr const char* kExact = "exact";        // its past is kept; writers with an oracle
inline constexpr const char* kZipped = "zipped";      // zstd
inline constexpr const char* kQuick = "quick";        // lz4
inline constexpr const char* kCache = "cache";        // evicts at a quota of its own
inline constexpr const char* kDatabase = "1";         // evicts at maxmemory
inline constexpr const char* kFleeting = "fleeting";  // its keys expire
inline constexpr const char* kProbe = "probe";        // one counter, for readers of the follower

struct Scene {
  uint16_t primary = 0;
  uint16_t follower = 0;
  FeedMirror* mirror = nullptr;
  Findings* findings = nullptr;
  absl::Notification ended;  // the load is over
};

}  // namespace varve::prove
