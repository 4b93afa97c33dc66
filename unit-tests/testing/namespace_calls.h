// What tests of namespaces ask of a store, in one call each.
#pragma once

#include <string>

#include "unit-tests/testing/test_store.h"

namespace varve::testing {

inline absl::Status Create(TestStore& store, NamespaceId id, const std::string& name = "",
                           NamespaceOptions options = {}) {
  WriteBatch batch;
  batch.CreateNamespace({.id = id, .name = name, .options = options});
  return store->Write({}, &batch).status();
}
inline absl::Status Clone(TestStore& store, NamespaceId source, NamespaceId id) {
  WriteBatch batch;
  batch.CloneNamespace(source, {.id = id});
  return store->Write({}, &batch).status();
}
inline absl::Status Swap(TestStore& store, NamespaceId one, NamespaceId other) {
  WriteBatch batch;
  batch.SwapNamespaces(one, other);
  return store->Write({}, &batch).status();
}
inline absl::Status Drop(TestStore& store, NamespaceId id) {
  WriteBatch batch;
  batch.DropNamespace(id);
  return store->Write({}, &batch).status();
}
inline absl::Status Put(TestStore& store, NamespaceId space, const std::string& key,
                        const std::string& value) {
  WriteBatch batch;
  batch.UseNamespace(space);
  batch.Put(key, value);
  return store->Write({}, &batch).status();
}
inline absl::Status Delete(TestStore& store, NamespaceId space, const std::string& key) {
  WriteBatch batch;
  batch.UseNamespace(space);
  batch.Delete(key);
  return store->Write({}, &batch).status();
}

// "key=value " of all keys, or the error.
inline std::string Scan(TestStore& store, NamespaceId space, const Snapshot* snapshot = nullptr) {
  std::string text;
  const auto iterator = store->NewIterator({.snapshot = snapshot, .space = space}, {}, {}, nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  }
  return iterator->status().ok() ? text : std::string(iterator->status().message());
}

}  // namespace varve::testing
