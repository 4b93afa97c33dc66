#include "varve/key_group.h"

#include <algorithm>

#include "fmt/format.h"
#include "varve/namespace_status.h"
#include "varve/write_batch.h"

namespace varve {
namespace {

// Returns the key as a message shows it: a start of it, in letters that every terminal has.
std::string Shown(std::string_view key) {
  constexpr size_t kMost = 64;
  std::string text = "'";
  for (const char c : key.substr(0, kMost)) {
    const bool plain = c >= ' ' && c <= '~';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (key.size() > kMost ? "...'" : "'");
}

std::string ReasonOf(const KeyGrouping& grouping) {
  switch (grouping.kind) {
    case KeyGrouping::Kind::kDelimiter:
      return fmt::format(
          "the namespace groups keys by what stands before the first {}, and a key without it is a "
          "group of its own; write keys that share it, or each group by a request of its own",
          Shown({&grouping.delimiter, 1}));
    case KeyGrouping::Kind::kNone:
      return "in this namespace each key is a group of its own; write each by a request of its "
             "own, or use a namespace created by NAMESPACE CREATE with TOGETHER yes or GROUP "
             "delimiter";
    case KeyGrouping::Kind::kTogether:
      break;
  }
  return "the namespace is one group";
}

class BatchGroups final : public WriteBatch::OperationVisitor, public WriteBatch::ConditionVisitor {
 public:
  explicit BatchGroups(GroupCheck* check) : check_(*check) {}

  absl::Status Put(NamespaceId space, std::string_view key, std::string_view,
                   const PutExtras&) override {
    return Key(space, key);
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause) override {
    return Key(space, key);
  }
  absl::Status DeleteRange(NamespaceId space, std::string_view, std::string_view) override {
    return Whole(space);
  }
  absl::Status ClearNamespace(NamespaceId space) override { return Whole(space); }
  absl::Status CreateNamespace(const NamespaceDescription& space) override {
    return Whole(space.id);
  }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription& space) override {
    return Whole(space.id);
  }
  absl::Status CloneNamespaceAt(NamespaceId, SequenceNumber,
                                const NamespaceDescription& space) override {
    return Whole(space.id);
  }
  absl::Status AlterNamespace(const NamespaceDescription& space) override {
    return Whole(space.id);
  }
  absl::Status DropNamespace(NamespaceId space) override { return Whole(space); }
  // Both are one change.
  absl::Status SwapNamespaces(NamespaceId one, NamespaceId) override { return Whole(one); }

  absl::Status Unchanged(NamespaceId space, std::string_view key,
                         const WriteBatch::ReadPoint&) override {
    return Key(space, key);
  }
  absl::Status NotPut(NamespaceId space, std::string_view key,
                      const WriteBatch::ReadPoint&) override {
    return Key(space, key);
  }
  absl::Status RangeUnchanged(NamespaceId space, std::string_view begin, std::string_view end,
                              SequenceNumber) override {
    check_.Range(space, begin, end);
    return check_.status();
  }

 private:
  absl::Status Key(NamespaceId space, std::string_view key) {
    check_.Key(space, key);
    return check_.status();
  }
  absl::Status Whole(NamespaceId space) {
    check_.Whole(space);
    return check_.status();
  }

  GroupCheck& check_;
};

constexpr std::string_view kTogetherText = "TOGETHER yes";
constexpr std::string_view kGroupText = "GROUP ";

}  // namespace

std::string GroupingText(const KeyGrouping& grouping) {
  switch (grouping.kind) {
    case KeyGrouping::Kind::kTogether:
      return std::string(kTogetherText);
    case KeyGrouping::Kind::kDelimiter:
      return std::string(kGroupText) + grouping.delimiter;
    case KeyGrouping::Kind::kNone:
      break;
  }
  return "";
}

std::optional<KeyGrouping> GroupingOfText(std::string_view text) {
  if (text.empty()) return KeyGrouping();
  if (text == kTogetherText) return KeyGrouping::Together();
  if (!text.starts_with(kGroupText) || text.size() != kGroupText.size() + 1) return std::nullopt;
  return KeyGrouping::By(text.back());
}

std::string_view GroupOf(const KeyGrouping& grouping, std::string_view key) {
  switch (grouping.kind) {
    case KeyGrouping::Kind::kTogether:
      return key.substr(0, 0);
    case KeyGrouping::Kind::kDelimiter: {
      // With the delimiter, so that no key without one has this name.
      const size_t delimiter = key.find(grouping.delimiter);
      return delimiter == std::string_view::npos ? key : key.substr(0, delimiter + 1);
    }
    case KeyGrouping::Kind::kNone:
      break;
  }
  return key;
}

bool IsWithinGroup(const KeyGrouping& grouping, std::string_view begin, std::string_view end) {
  if (!end.empty() && end <= begin) return true;
  switch (grouping.kind) {
    case KeyGrouping::Kind::kTogether:
      return true;
    case KeyGrouping::Kind::kDelimiter: {
      const std::string_view group = GroupOf(grouping, begin);
      if (group.empty() || group.back() != grouping.delimiter) break;
      // Behind the last key that begins so there are only keys from `past` on.
      std::string past(group);
      while (!past.empty() && static_cast<unsigned char>(past.back()) == 0xff) past.pop_back();
      if (past.empty()) return true;
      past.back() = static_cast<char>(static_cast<unsigned char>(past.back()) + 1);
      return !end.empty() && end <= past;
    }
    case KeyGrouping::Kind::kNone:
      break;
  }
  return !end.empty() && end.size() == begin.size() + 1 && end.starts_with(begin) &&
         end.back() == '\0';
}

std::optional<KeyGrouping> GroupCheck::GroupingOf(NamespaceId space) {
  if (first_ && first_->space == space) return first_->grouping;
  return groups_of_(space);
}

void GroupCheck::Key(NamespaceId space, std::string_view key) {
  Add({space, key, GroupingOf(space), /*is_whole=*/false});
}

void GroupCheck::Range(NamespaceId space, std::string_view begin, std::string_view end) {
  const Place place{space, begin, GroupingOf(space), /*is_whole=*/false};
  Add(place);
  if (!status_.ok() || !place.grouping || IsWithinGroup(*place.grouping, begin, end)) return;
  status_ = CrossGroup(fmt::format("the range of keys from {} on is not within one group: {}",
                                   Shown(begin), ReasonOf(*place.grouping)));
}

void GroupCheck::Whole(NamespaceId space) {
  Add({space, {}, GroupingOf(space), /*is_whole=*/true});
}

void GroupCheck::Add(const Place& place) {
  if (!status_.ok()) return;
  if (!first_) {
    first_ = place;
    return;
  }
  const Place& first = *first_;
  if (!first.grouping && !place.grouping) return;
  if (first.is_whole || place.is_whole) {
    status_ = CrossGroup(
        "a change of a range of keys, or of a whole namespace, is not in one group with anything "
        "else where keys have groups: do it by a request of its own, outside of a transaction");
  } else if (first.space != place.space) {
    status_ = CrossGroup(fmt::format(
        "keys {} and {} are in two namespaces, which are never one group: write to each namespace "
        "by a request of its own",
        Shown(first.key), Shown(place.key)));
  } else if (GroupOf(*first.grouping, first.key) != GroupOf(*place.grouping, place.key)) {
    status_ = CrossGroup(fmt::format("keys {} and {} are not of one group: {}", Shown(first.key),
                                     Shown(place.key), ReasonOf(*place.grouping)));
  }
}

absl::Status CheckGroups(const WriteBatch& batch, GroupCheck::GroupsOf groups_of) {
  GroupCheck check(groups_of);
  BatchGroups groups(&check);
  if (absl::Status status = batch.ForEachOperation(&groups); !status.ok()) return status;
  return batch.ForEachCondition(&groups);
}

}  // namespace varve
