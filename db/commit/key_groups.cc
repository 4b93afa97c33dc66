#include "db/commit/key_groups.h"

#include <optional>

#include "type/tree_key.h"
#include "varve/key_group.h"

namespace varve {
namespace {

void Add(const Commit::Operation& operation, GroupCheck* check) {
  switch (operation.record.kind) {
    case RecordKind::kValue:
    case RecordKind::kTombstone:
      return check->Key(operation.space, UserKeyOf(operation.record.key));
    case RecordKind::kRangeTombstone:
    case RecordKind::kSwitchGeneration:
    case RecordKind::kChangeNamespace:
      return check->Whole(operation.space);
    default:
      return;  // of no namespace
  }
}

}  // namespace

absl::Status CheckKeyGroups(const NamespaceTable& namespaces, const Commit& commit) {
  const auto groups_of = [&](NamespaceId space) -> std::optional<KeyGrouping> {
    const KeyGrouping grouping = namespaces.GroupingOf(space);
    if (!grouping.declared()) return std::nullopt;
    return grouping;
  };
  GroupCheck check(groups_of);
  for (const Commit::Operation& operation : commit.operations()) Add(operation, &check);
  for (const Commit::Condition& condition : commit.conditions())
    check.Key(condition.space, UserKeyOf(condition.tree_key));
  for (const Commit::RangeCondition& condition : commit.range_conditions()) {
    // The upper bound of a resolved condition that reaches to the end names the next generation.
    check.Range(condition.space, UserKeyOf(condition.lower), UserKeyOf(condition.upper));
  }
  return check.status();
}

}  // namespace varve
