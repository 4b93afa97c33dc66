// A server whose keys are looked at as paths, and a model of what lies below a prefix. For tests of
// CHILDREN and TREE.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/server/command_fixture.h"

namespace varve::testing {

class PathTest : public CommandTest {
 protected:
  using Words = std::vector<std::string>;

  void Put(const Words& keys) {
    Words request = {"MSET"};
    for (const std::string& key : keys) request.insert(request.end(), {key, "value"});
    ASSERT_EQ(Do(request), "OK");
  }
  // Puts the keys that are the prefix and seven digits each.
  void PutMany(const std::string& prefix, int count) {
    for (int i = 0; i < count; i += 500) {
      Words keys;
      for (int k = i; k < std::min(count, i + 500); ++k)
        keys.push_back(prefix + std::to_string(1'000'000 + k));
      Put(keys);
    }
  }
  uint64_t Statistic(const std::string& name) {
    for (const auto& [key, value] : server_.store().Statistics()) {
      if (key == name) return value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  // Puts or deletes a random key of the letters, in the store and in the model. Returns the key.
  std::string ChangeRandomKey(std::string_view letters, uint32_t longest, std::mt19937* random) {
    std::string key;
    for (uint32_t length = 1 + (*random)() % longest; length > 0; --length)
      key += letters[(*random)() % letters.size()];
    if ((*random)() % 4 == 0) {
      Do({"DEL", key});
      keys_.erase(key);
    } else {
      Put({key});
      keys_.insert(key);
    }
    return key;
  }
  // Returns the names directly below the prefix, as the model has them, with the number of keys of
  // each. Those of directories end in '/'.
  std::map<std::string, int> NamesBelow(const std::string& prefix) const {
    std::map<std::string, int> names;
    for (const std::string& key : keys_) {
      if (!key.starts_with(prefix) || key == prefix) continue;
      const std::string rest = key.substr(prefix.size());
      ++names[rest.substr(0, std::min(rest.find('/'), rest.size() - 1) + 1)];
    }
    return names;
  }

 private:
  std::set<std::string> keys_;  // of the model
};

}  // namespace varve::testing
