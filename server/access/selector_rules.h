// The rules of one selector: those for commands, keys, channels, databases and namespaces.
//
// Thread-safety: the functions change only their argument.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "server/access/acl_rules.h"

namespace varve {

// Returns a selector that allows nothing, but works everywhere.
Selector NewSelector(const RuleContext& context);

// InvalidArgument as in ApplyUserRule().
absl::Status ApplySelectorRule(const RuleContext& context, std::string_view rule,
                               Selector* selector);

}  // namespace varve
