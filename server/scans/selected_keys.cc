#include "server/scans/selected_keys.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/access/visible_keys.h"
#include "server/execution/rights_check.h"
#include "util/base/assert.h"
#include "util/base/glob.h"

namespace varve {

SelectedKeys::SelectedKeys(KeyRange range) {
  if (!range.empty) ranges.push_back(std::move(range));
}

bool SelectedKeys::Shows(std::string_view key) const {
  if (patterns.empty()) return true;
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return GlobMatches(pattern, key); });
}

SelectedKeys SelectVisible(const CommandContext& context, Arguments request, KeyRange range) {
  VARVE_ASSERT(!request.empty());
  const ClientRights& rights = context.client.rights;
  if (!rights.limited()) return SelectedKeys(std::move(range));
  const CommandCatalog& catalog = context.server.clients.users.catalog();
  const std::optional<size_t> number = catalog.Find(request[0]);
  VARVE_ASSERT(number.has_value());
  VisibleKeys visible = FindVisibleKeys(catalog, rights.user(), *catalog.entry(*number).command,
                                        request, PlaceOfClient(context.client));
  SelectedKeys selected(range);
  if (visible.all) return selected;
  selected.ranges = CutRanges(range, visible.ranges);
  selected.patterns = std::move(visible.patterns);
  return selected;
}

}  // namespace varve
