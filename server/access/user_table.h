// The table of users, by name. Users in it do not change: who changes one publishes another, and
// raises the epoch, by which connections see that they have to look again.
//
// Thread-safety: all functions may be called on any thread; login_needed() and epoch() take no
// lock.
// Invariants: there always is a user "default".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/access/acl_rules.h"
#include "server/access/command_catalog.h"
#include "server/access/user.h"

namespace varve {

using UserPointer = std::shared_ptr<const User>;

class UserTable {
 public:
  // Begins with the user "default", who has all rights, and the password, if that is not empty.
  // Requires: `catalog` outlives the table.
  UserTable(const CommandCatalog* catalog, std::string_view password);
  UserTable(const UserTable&) = delete;
  UserTable& operator=(const UserTable&) = delete;

  const CommandCatalog& catalog() const { return catalog_; }
  // New selectors may use all channels: acl-pubsub-default is allchannels.
  void set_all_channels(bool all) { all_channels_.store(all, std::memory_order_relaxed); }

  // Returns null if there is none of that name.
  UserPointer Find(std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  UserPointer Default() const { return Find("default"); }
  // Returns all users by name.
  std::vector<UserPointer> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Applies rules to the user, who is made where there is none. InvalidArgument: nothing changed.
  absl::Status Set(std::string_view name, absl::Span<const std::string_view> rules)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether there was such a user. Requires: it is not "default".
  bool Remove(std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has these users and no others. One whose name was there stays the same to those who are logged
  // in. A user "default" that is not among them stays as it is.
  void Replace(std::vector<User> users) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives "default" this password alone; with an empty one it needs none.
  void SetDefaultPassword(std::string_view password) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the user if it is on and has the password; null otherwise. The time that this takes
  // does not tell which byte of the password differs.
  UserPointer LogIn(std::string_view name, std::string_view password) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether clients have to log in: "default" is off or has a password.
  bool login_needed() const { return login_needed_.load(std::memory_order_acquire); }
  // Returns whether "default" takes any password.
  bool default_nopass() const { return Default()->nopass; }
  // Rises with each change.
  const std::atomic<uint64_t>& epoch() const { return epoch_; }

  RuleContext rule_context() const {
    return {catalog_, all_channels_.load(std::memory_order_relaxed)};
  }

 private:
  using Table = std::map<std::string, UserPointer, std::less<>>;

  // Publishes what the table holds now.
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CommandCatalog& catalog_;
  std::atomic<bool> all_channels_{false};
  std::atomic<bool> login_needed_{false};
  std::atomic<uint64_t> epoch_{1};
  mutable absl::Mutex mutex_;
  uint64_t next_identity_ ABSL_GUARDED_BY(mutex_) = 1;
  Table users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
