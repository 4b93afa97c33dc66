// Users of the server's own commands, for tests of rules and rights.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/access/acl_rules.h"
#include "server/access/permissions.h"
#include "server/commands/command_table.h"
#include "server/user_commands/command_rights.h"

namespace varve::testing {

inline RuleContext Rules() { return {AccessCatalog(), false}; }

inline std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// A user with the rules, which stand between blanks.
inline User UserWith(std::string_view rules) {
  User user = NewUser(Rules(), "alice");
  user.identity = 1;
  const absl::Status applied = ApplyUserRules(Rules(), Words(rules), &user);
  EXPECT_TRUE(applied.ok()) << rules << ": " << applied;
  return user;
}

// Why the user may not execute the request: "command get", "key secret"; empty: it may.
inline std::string DenialOf(const User& user, std::string_view request, const Place& place = {}) {
  const std::vector<std::string_view> words = Words(request);
  const Command* const command = FindCommand(words[0]);
  EXPECT_NE(command, nullptr) << request;
  const std::optional<Denial> denial = FindDenial(AccessCatalog(), user, *command, words, place);
  if (!denial) return "";
  constexpr std::string_view kNames[] = {"command ", "key ", "place ", "channel "};
  return std::string(kNames[static_cast<size_t>(denial->reason)]) + denial->object;
}

}  // namespace varve::testing
