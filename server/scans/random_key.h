// RANDOMKEY: a key at random without reading them all.
//
// The keys are a tree of bytes: keys that share a beginning part where their next bytes differ.
// From the top down one of the branches is chosen, each as likely as the others, until one key is
// left; a branch takes a few seeks. So among keys built alike (`user:000001`, random ids) each is
// about as likely as another, but a key that stands alone in its branch is more likely than one of
// many in theirs.
//
// Thread-safety: the function may be called on any thread.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/scans/selected_keys.h"
#include "varve/store.h"

namespace varve {

// Returns nothing if there are no keys. `*durable_after` as in ReadResult.
// Among ranges each that holds a key is as likely as the others.
[[nodiscard]] absl::StatusOr<std::optional<std::string>> RandomKey(StoreContents& store,
                                                                   NamespaceId space,
                                                                   SelectedKeys keys,
                                                                   SequenceNumber* durable_after);

}  // namespace varve
