// A key window gathers what keys have become, each key's last state alone, so that a target can be
// given all of them at once in any order.
//
// Thread-safety: One thread at a time uses a window.
// Invariants: A key is there once, as it was put or deleted last.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "client/move/moved_record.h"

namespace varve {

class KeyWindow {
 public:
  // Keys ascend, so that those of one region of a cluster follow each other.
  using Keys = std::map<std::string, std::optional<MovedRecord>>;  // nothing: it is deleted

  void Put(const std::string& space, MovedRecord record);
  void Delete(const std::string& space, const std::string& key);
  void Clear();

  bool empty() const { return spaces_.empty(); }
  // Returns the bytes of keys, values and metadata, those that were replaced included.
  size_t bytes() const { return bytes_; }
  const std::map<std::string, Keys>& spaces() const { return spaces_; }

 private:
  std::map<std::string, Keys> spaces_;
  size_t bytes_ = 0;
};

}  // namespace varve
