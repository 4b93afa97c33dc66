#include "server/feed/visible_changes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "server/access/permissions.h"
#include "util/base/assert.h"
#include "util/base/glob.h"
#include "varve/namespace.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

constexpr std::string_view kWords[] = {"set",      "del",   "expire", "expired", "evicted",
                                       "delrange", "flush", "ingest", "create",  "drop",
                                       "swap",     "clone", "meta"};

// More namespaces than a reader has to do with at once are not remembered.
constexpr size_t kMostRemembered = 256;

bool ConcernsSpace(Kind kind) {
  return kind == Kind::kFlush || kind == Kind::kCreate || kind == Kind::kDrop ||
         kind == Kind::kSwap || kind == Kind::kClone;
}

// Returns whether the key lies in one of the ranges, and matches one of the patterns, if any.
bool Holds(const VisibleKeys& keys, std::string_view key) {
  const auto behind =
      std::upper_bound(keys.ranges.begin(), keys.ranges.end(), key,
                       [](std::string_view k, const KeyRange& range) { return k < range.lower; });
  if (behind == keys.ranges.begin()) return false;
  const KeyRange& range = *std::prev(behind);
  if (!range.upper.empty() && key >= range.upper) return false;
  return keys.patterns.empty() ||
         std::any_of(keys.patterns.begin(), keys.patterns.end(),
                     [&](const std::string& pattern) { return GlobMatches(pattern, key); });
}

// The number of a database, or the name of a namespace.
Place PlaceOf(NamespaceId space, std::string_view name) {
  if (space >= kFirstNamedNamespace) return {.name = name.empty() ? std::string_view(" ") : name};
  return {.database = space};
}

}  // namespace

std::string_view ChangeWord(Kind kind) {
  VARVE_ASSERT(static_cast<size_t>(kind) < std::size(kWords));
  return kWords[static_cast<size_t>(kind)];
}

std::string SpaceText(NamespaceId space, std::string_view name) {
  return name.empty() ? fmt::to_string(space) : std::string(name);
}

VisibleChanges::VisibleChanges(KeyRange range, const CommandCatalog* catalog, UserPointer user,
                               const Command* command, std::vector<std::string> request)
    : range_(std::move(range)),
      catalog_(*catalog),
      user_(std::move(user)),
      command_(*command),
      request_(std::move(request)) {}

void VisibleChanges::Become(UserPointer user) {
  user_ = std::move(user);
  keys_.clear();
}

const VisibleKeys& VisibleChanges::KeysOf(NamespaceId space, std::string_view name) {
  if (const auto known = keys_.find(space); known != keys_.end()) return known->second;
  VisibleKeys visible;
  if (user_ == nullptr || user_->unrestricted) {
    visible.all = true;
  } else {
    const std::vector<std::string_view> request(request_.begin(), request_.end());
    visible = FindVisibleKeys(catalog_, *user_, command_, request, PlaceOf(space, name));
  }
  if (visible.all) {
    visible.ranges.clear();
    visible.patterns.clear();
    if (!range_.empty) visible.ranges.push_back(range_);
  } else {
    visible.ranges = CutRanges(range_, visible.ranges);
  }
  return keys_.emplace(space, std::move(visible)).first->second;
}

bool VisibleChanges::MaySee(std::string_view other_space) const {
  if (user_ == nullptr || user_->unrestricted) return true;
  const bool is_number =
      !other_space.empty() && std::all_of(other_space.begin(), other_space.end(),
                                          [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return MayUsePlace(*user_, {.name = other_space});
  uint32_t database = 0;
  for (const char digit : other_space)
    database = database * 10 + static_cast<uint32_t>(digit - '0');
  return MayUsePlace(*user_, {.database = database});
}

bool VisibleChanges::ShowRange(const VisibleKeys& keys, bool is_inclusive,
                               ShownOperation* shown) const {
  const auto overlaps = [&](const KeyRange& range) {
    const bool begins_before = range.upper.empty() || shown->key < range.upper;
    const bool ends_behind = is_inclusive ? shown->value >= range.lower
                                          : shown->value.empty() || shown->value > range.lower;
    return begins_before && ends_behind;
  };
  const auto first = std::find_if(keys.ranges.begin(), keys.ranges.end(), overlaps);
  if (first == keys.ranges.end()) return false;
  const auto last = std::find_if(keys.ranges.rbegin(), keys.ranges.rend(), overlaps);
  shown->key = std::max<std::string_view>(shown->key, first->lower);
  const std::string_view end = last->upper;
  const bool is_open = !is_inclusive && shown->value.empty();
  if (!end.empty() && (is_open || shown->value > end)) shown->value = end;
  return true;
}

bool VisibleChanges::Show(const ChangeOperation& operation, bool keys_only, ShownOperation* shown) {
  const VisibleKeys& keys = KeysOf(operation.space, operation.name);
  shown->operation = &operation;
  if (ConcernsSpace(operation.kind)) {
    const bool names_other = operation.kind == Kind::kSwap || operation.kind == Kind::kClone;
    shown->has_key = names_other && MaySee(operation.key);
    if (shown->has_key) shown->key = operation.key;
    if ((shown->has_key && operation.kind == Kind::kClone) || operation.kind == Kind::kCreate)
      shown->value = operation.value;
    shown->has_value = !shown->value.empty();
    return !keys.ranges.empty();
  }
  shown->key = operation.key;
  shown->value = operation.value;
  shown->has_key = true;
  if (operation.kind == Kind::kDeleteRange || operation.kind == Kind::kIngest) {
    shown->has_value = true;
    return ShowRange(keys, operation.kind == Kind::kIngest, shown);
  }
  shown->has_value =
      !keys_only && (operation.kind == Kind::kSet || operation.kind == Kind::kExpire ||
                     operation.kind == Kind::kMeta);
  return Holds(keys, operation.key);
}

std::vector<ShownOperation> VisibleChanges::Show(const Change& change, bool keys_only) {
  if (keys_.size() >= kMostRemembered) keys_.clear();
  std::vector<ShownOperation> all;
  all.reserve(change.operations.size());
  for (const ChangeOperation& operation : change.operations) {
    ShownOperation shown;
    if (Show(operation, keys_only, &shown)) all.push_back(shown);
  }
  return all;
}

}  // namespace varve
