// The rules of ACL SETUSER and of the file of users: "on", ">password", "~app:*", "%R~shared:*",
// "&news", "+get", "-@dangerous", "+config|get", "db=0", "ns=app", "(~tmp:* +del)". Beside Redis'
// words there are Valkey's db=, alldbs and resetdbs for databases, ns=, allns and resetns for
// namespaces, and maxclients=, cidr= and expires= for limits (server/access/user_limits.h).
//
// A selector may work everywhere until a rule names databases or namespaces: from then on it may
// work in those alone that rules name, be they databases or namespaces.
//
// Thread-safety: the functions change only their argument.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/access/command_catalog.h"
#include "server/access/user.h"

namespace varve {

// The context holds what rules refer to beside the user.
struct RuleContext {
  const CommandCatalog& catalog;
  bool all_channels = false;  // acl-pubsub-default is allchannels: new selectors may use all
};

// Returns a user that is off and may do nothing.
User NewUser(const RuleContext& context, std::string_view name);
// Returns the user "default" as it is before anybody changes it: on, without a password, and
// allowed everything.
User NewDefaultUser(const RuleContext& context);

// Returns the rules with those of a selector, which may come as several arguments, joined to one.
absl::StatusOr<std::vector<std::string>> JoinSelectors(absl::Span<const std::string_view> rules);

// Applies one rule. InvalidArgument says in Redis' words what is wrong with it; then the user may
// have changed in part, and must not be published.
absl::Status ApplyUserRule(const RuleContext& context, std::string_view rule, User* user);
// Applies rules in turn, JoinSelectors() included. The error says in what, and names the rule.
absl::Status ApplyUserRules(const RuleContext& context, absl::Span<const std::string_view> rules,
                            User* user, std::string_view in_what = "ACL SETUSER modifier");

// Returns whether a user may have the name.
bool IsUserName(std::string_view name);
// Returns whether the text has white space or a zero byte, which no name and no pattern may have.
bool HasSpaces(std::string_view text);

}  // namespace varve
