#include "server/access/acl_rules.h"

#include <algorithm>

#include "fmt/format.h"
#include "server/access/password_hash.h"
#include "server/access/selector_rules.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status ApplyHash(std::string_view hash, bool adds, User* user) {
  std::vector<std::string>& known = user->passwords;
  const auto found = std::find(known.begin(), known.end(), hash);
  if (!adds) {
    if (found == known.end()) {
      return absl::InvalidArgumentError(
          "The password you are trying to remove from the user does not exist");
    }
    known.erase(found);
    return absl::OkStatus();
  }
  if (found == known.end()) known.emplace_back(hash);
  user->nopass = false;
  return absl::OkStatus();
}

// ">password", "<password", "#hash" and "!hash".
absl::Status ApplyPassword(std::string_view rule, User* user) {
  const char what = rule[0];
  rule.remove_prefix(1);
  if (what == '>' || what == '<') return ApplyHash(PasswordHash(rule), what == '>', user);
  if (!IsPasswordHash(rule)) {
    return absl::InvalidArgumentError(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
        "characters");
  }
  return ApplyHash(rule, what == '#', user);
}

// Rules between parentheses, for a selector of its own.
absl::Status AddSelector(const RuleContext& context, std::string_view rules, User* user) {
  Selector selector = NewSelector(context);
  while (!rules.empty()) {
    const size_t end = std::min(rules.find(' '), rules.size());
    const std::string_view rule = rules.substr(0, end);
    // It would end the selector where a file of users is read.
    if (rule.ends_with(')')) return absl::InvalidArgumentError("Syntax error");
    if (end > 0) VARVE_RETURN_IF_ERROR(ApplySelectorRule(context, rule, &selector));
    rules.remove_prefix(std::min(end + 1, rules.size()));
  }
  user->selectors.push_back(std::move(selector));
  return absl::OkStatus();
}

void Reset(const RuleContext& context, User* user) {
  user->on = user->nopass = false;
  user->passwords.clear();
  user->limits = UserLimits();
  user->payload = User::Payload::kSanitize;
  user->selectors.clear();
  user->root = NewSelector(context);
}

}  // namespace

bool IsUserName(std::string_view name) { return !name.empty() && !HasSpaces(name); }

bool HasSpaces(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || c == '\0' || (c >= '\t' && c <= '\r'); });
}

User NewUser(const RuleContext& context, std::string_view name) {
  User user;
  user.name.assign(name);
  user.root = NewSelector(context);
  return user;
}

User NewDefaultUser(const RuleContext& context) {
  User user = NewUser(context, "default");
  user.on = user.nopass = true;
  for (const std::string_view rule : {"+@all", "~*", "&*"}) {
    const absl::Status applied = ApplySelectorRule(context, rule, &user.root);
    VARVE_ASSERT(applied.ok() || rule == "&*");
  }
  user.unrestricted = true;
  VARVE_ASSERT(AllowsAll(user.root));
  return user;
}

absl::StatusOr<std::vector<std::string>> JoinSelectors(absl::Span<const std::string_view> rules) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < rules.size(); ++i) {
    joined.emplace_back(rules[i]);
    if (!rules[i].starts_with('(')) continue;
    const size_t first = i;
    while (!joined.back().ends_with(')')) {
      if (++i == rules.size()) {
        return absl::InvalidArgumentError(
            fmt::format("Unmatched parenthesis in acl selector starting at '{}'.", rules[first]));
      }
      joined.back() += ' ';
      joined.back() += rules[i];
    }
  }
  return joined;
}

absl::Status ApplyUserRule(const RuleContext& context, std::string_view rule, User* user) {
  const auto is = [&](std::string_view word) { return EqualsIgnoreCase(rule, word); };
  if (is("on") || is("off")) {
    user->on = is("on");
  } else if (is("nopass") || is("resetpass")) {
    user->nopass = is("nopass");
    user->passwords.clear();
  } else if (is("sanitize-payload") || is("skip-sanitize-payload")) {
    user->payload = is("sanitize-payload") ? User::Payload::kSanitize : User::Payload::kSkip;
  } else if (IsLimitRule(rule)) {
    return ApplyLimitRule(rule, &user->limits);
  } else if (is("clearselectors")) {
    user->selectors.clear();
  } else if (is("reset")) {
    Reset(context, user);
  } else if (!rule.empty() && std::string_view("><#!").find(rule[0]) != std::string_view::npos) {
    return ApplyPassword(rule, user);
  } else if (rule.starts_with('(') && rule.ends_with(')')) {
    return AddSelector(context, rule.substr(1, rule.size() - 2), user);
  } else if (!rule.empty()) {
    return ApplySelectorRule(context, rule, &user->root);
  }
  return absl::OkStatus();
}

absl::Status ApplyUserRules(const RuleContext& context, absl::Span<const std::string_view> rules,
                            User* user, std::string_view in_what) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> joined, JoinSelectors(rules));
  for (const std::string& rule : joined) {
    const absl::Status applied = ApplyUserRule(context, rule, user);
    if (applied.ok()) continue;
    const absl::string_view why = applied.message();
    return absl::InvalidArgumentError(fmt::format("Error in {} '{}': {}", in_what, rule,
                                                  std::string_view(why.data(), why.size())));
  }
  user->unrestricted = AllowsAll(user->root) ||
                       std::any_of(user->selectors.begin(), user->selectors.end(), AllowsAll);
  VARVE_ASSERT(user->root.commands.size() == context.catalog.size());
  VARVE_ASSERT(!user->nopass || user->passwords.empty());
  return absl::OkStatus();
}

}  // namespace varve
