// A group holds the keys that one batch may change and have conditions on together. A namespace
// declares its groups when it is created, so that they are the same on every store, wherever the
// store keeps the keys.
//
//   kTogether   the whole namespace is one group
//   kDelimiter  the keys that share what stands before the first delimiter, and have one, are a
//               group; a key without a delimiter is a group of its own
//   kNone       nothing is declared. On a store with Atomicity::kAnyKeys the namespace has no
//               groups, and any keys may be written together; on a store with
//               Atomicity::kWithinGroup each key is a group of its own
//
// Keys of two namespaces are never of one group.
//
// Thread-safety: KeyGrouping is a plain value, the functions are stateless, and one thread at a
// time uses a GroupCheck.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

class WriteBatch;

struct KeyGrouping {
  enum class Kind : uint8_t {
    kNone = 0,
    kTogether = 1,
    kDelimiter = 2
  };  // the numbers are on disk

  Kind kind = Kind::kNone;
  char delimiter = '\0';  // of kDelimiter

  static KeyGrouping Together() { return {Kind::kTogether, '\0'}; }
  static KeyGrouping By(char delimiter) { return {Kind::kDelimiter, delimiter}; }
  bool declared() const { return kind != Kind::kNone; }
  friend bool operator==(const KeyGrouping&, const KeyGrouping&) = default;
};

// Returns the grouping in words, as NAMESPACE CREATE takes them: "TOGETHER yes", "GROUP " with the
// delimiter, or nothing where no groups are declared.
std::string GroupingText(const KeyGrouping& grouping);
// Returns the grouping that GroupingText() has written; nothing: the text is of no grouping.
std::optional<KeyGrouping> GroupingOfText(std::string_view text);

// Returns the name of the key's group within its namespace, a prefix of the key: two keys of the
// namespace are in one group if and only if the names are equal.
std::string_view GroupOf(const KeyGrouping& grouping, std::string_view key);
// Returns whether all keys of [begin, end) that there may be are in one group; an empty `end` means
// to the end of the namespace.
bool IsWithinGroup(const KeyGrouping& grouping, std::string_view begin, std::string_view end);

// Looks, one after the other, at the keys and ranges that one batch would write or has conditions
// on.
class GroupCheck {
 public:
  // Returns how the keys of a namespace are grouped; nothing: it has no groups.
  using GroupsOf = absl::FunctionRef<std::optional<KeyGrouping>(NamespaceId)>;

  // Requires: `groups_of`, and the keys that are added, outlive the check.
  explicit GroupCheck(GroupsOf groups_of) : groups_of_(groups_of) {}

  void Key(NamespaceId space, std::string_view key);
  // A condition on all keys of [begin, end).
  void Range(NamespaceId space, std::string_view begin, std::string_view end);
  // A change of a whole range or namespace with groups takes a batch of its own.
  void Whole(NamespaceId space);

  // Returns CrossGroup (varve/namespace_status.h) if what was added is not of one group, and has
  // said why and what to do.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  struct Place {
    NamespaceId space;
    std::string_view key;
    std::optional<KeyGrouping> grouping;
    bool is_whole;
  };

  void Add(const Place& place);
  std::optional<KeyGrouping> GroupingOf(NamespaceId space);

  const GroupsOf groups_of_;
  std::optional<Place> first_;
  absl::Status status_;
};

// Returns CrossGroup if the operations and conditions of the batch are not of one group. Creating,
// altering, dropping and swapping namespaces with groups counts as GroupCheck::Whole().
[[nodiscard]] absl::Status CheckGroups(const WriteBatch& batch, GroupCheck::GroupsOf groups_of);

}  // namespace varve
