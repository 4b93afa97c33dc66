// The rights of one connection: the user that it is logged in as, which it looks up again when the
// table of users has changed.
//
// Thread-safety: only the thread that executes for the connection uses them.
// Invariants: there is a user once Begin() was called, also for a client that has not logged in.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "server/access/user_table.h"
#include "util/base/assert.h"

namespace varve {

class ClientRights {
 public:
  // The connection has the rights of the user "default". Requires: the table outlives it.
  void Begin(const UserTable* table) {
    VARVE_ASSERT(table != nullptr);
    table_ = table;
    seen_epoch_ = table->epoch().load(std::memory_order_acquire);
    seat_.Leave();
    Take(table->Default());
  }

  // The connection has the rights of `user` for good, who is in no table. For requests of the
  // server's own. Requires: the user has an identity.
  void BeginOwn(UserPointer user) {
    table_ = nullptr;
    seat_.Leave();
    Take(std::move(user));
  }

  // From now on the connection has the rights of `user`. What changed since that was looked up is
  // seen with the next request.
  void Become(UserPointer user) {
    VARVE_ASSERT(table_ != nullptr);
    seen_epoch_ = 0;
    Take(std::move(user));
  }

  // Takes one of the connections that the user may have, instead of the one taken before. False:
  // it has them all.
  [[nodiscard]] bool TakeSeat(const User& user) {
    return seat_.Take(user.seats, user.limits.max_clients);
  }

  // Returns whether requests have to be checked, or the user to be looked up again.
  bool NeedCheck() const { return limited_ || bound_ || Stale(); }
  bool Stale() const {
    return table_ != nullptr && seen_epoch_ != table_->epoch().load(std::memory_order_acquire);
  }
  // Returns whether the user may not do everything.
  bool limited() const { return limited_; }
  // Returns whether the user's limits may refuse a request.
  bool bound() const { return bound_; }
  const User& user() const { return *user_; }
  const UserPointer& user_pointer() const { return user_; }

  // Looks the user up again. False: there is no such user any more, and the rights stay as they
  // were and stale.
  bool LookAgain() {
    VARVE_ASSERT(table_ != nullptr && user_ != nullptr);
    const uint64_t epoch = table_->epoch().load(std::memory_order_acquire);
    UserPointer now = table_->Find(user_->name);
    if (now == nullptr || now->identity != user_->identity) return false;  // and still stale
    Take(std::move(now));
    seen_epoch_ = epoch;
    return true;
  }

 private:
  void Take(UserPointer user) {
    VARVE_ASSERT(user != nullptr && user->identity > 0);
    user_ = std::move(user);
    limited_ = !user_->unrestricted;
    bound_ = user_->limits.bind_requests();
  }

  const UserTable* table_ = nullptr;
  UserPointer user_;
  uint64_t seen_epoch_ = 0;
  bool limited_ = false;
  bool bound_ = false;
  UserSeat seat_;
};

}  // namespace varve
