// The part of a commit that a reader of the change feed is shown: operations on keys that the
// reader asks for and its user may read. What concerns a range of keys is cut to them; what
// concerns a whole namespace is shown to a user who may read some of its keys.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/command_catalog.h"
#include "server/access/user_table.h"
#include "server/access/visible_keys.h"
#include "server/requests/key_range.h"
#include "varve/changes.h"

namespace varve {

// Returns the word that the feed has for the operation.
std::string_view ChangeWord(ChangeOperation::Kind kind);

// Returns what a namespace is called: its name, or the number of a database.
std::string SpaceText(NamespaceId space, std::string_view name);

// One operation as it is shown. The views are into the operation and the object that showed it,
// until that shows the next commit.
struct ShownOperation {
  const ChangeOperation* operation = nullptr;
  std::string_view key;
  std::string_view value;
  bool has_key = false;
  bool has_value = false;
};

class VisibleChanges {
 public:
  // `command` is the one whose right the reader has; its first arguments are `request`.
  // Requires: the catalog outlives this. `user` may be null: all keys are shown.
  VisibleChanges(KeyRange range, const CommandCatalog* catalog, UserPointer user,
                 const Command* command, std::vector<std::string> request);

  // Returns the operations of the commit that are shown.
  std::vector<ShownOperation> Show(const Change& change, bool keys_only);
  // Returns the keys of the namespace that are shown: `patterns` as in VisibleKeys.
  const VisibleKeys& KeysOf(NamespaceId space, std::string_view name);

  const KeyRange& range() const { return range_; }
  const Command& command() const { return command_; }
  // From now on the reader has the rights of `user`.
  void Become(UserPointer user);
  const UserPointer& user() const { return user_; }

 private:
  bool Show(const ChangeOperation& operation, bool keys_only, ShownOperation* shown);
  bool ShowRange(const VisibleKeys& keys, bool is_inclusive, ShownOperation* shown) const;
  bool MaySee(std::string_view other_space) const;

  const KeyRange range_;
  const CommandCatalog& catalog_;
  UserPointer user_;
  const Command& command_;
  const std::vector<std::string> request_;
  std::map<NamespaceId, VisibleKeys> keys_;
};

}  // namespace varve
