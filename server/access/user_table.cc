#include "server/access/user_table.h"

#include <utility>

#include "server/access/password_hash.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

UserTable::UserTable(const CommandCatalog* catalog, std::string_view password)
    : catalog_(*catalog) {
  Replace({});
  if (!password.empty()) SetDefaultPassword(password);
}

void UserTable::Publish() {
  const User& user = *users_.find("default")->second;
  VARVE_ASSERT(user.identity > 0 && user.identity < next_identity_);
  login_needed_.store(!user.nopass || !user.on, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  VARVE_ASSERT(epoch_.load() > 1);
}

UserPointer UserTable::Find(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(name);
  return found != users_.end() ? found->second : nullptr;
}

std::vector<UserPointer> UserTable::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<UserPointer> all;
  for (const auto& [name, user] : users_) all.push_back(user);
  return all;
}

absl::Status UserTable::Set(std::string_view name, absl::Span<const std::string_view> rules) {
  absl::MutexLock lock(&mutex_);
  const RuleContext context = rule_context();
  const auto known = users_.find(name);
  User user = known != users_.end() ? *known->second : NewUser(context, name);
  VARVE_RETURN_IF_ERROR(ApplyUserRules(context, rules, &user));
  if (known == users_.end()) user.identity = next_identity_++;
  VARVE_ASSERT(user.identity > 0);
  users_.insert_or_assign(std::string(name), std::make_shared<const User>(std::move(user)));
  Publish();
  return absl::OkStatus();
}

bool UserTable::Remove(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(name != "default");
  const auto found = users_.find(name);
  if (found == users_.end()) return false;
  users_.erase(found);
  Publish();
  return true;
}

void UserTable::Replace(std::vector<User> users) {
  absl::MutexLock lock(&mutex_);
  Table table;
  const auto add = [&](User user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto known = users_.find(user.name);
    user.identity = known != users_.end() ? known->second->identity : next_identity_++;
    if (known != users_.end()) user.seats = known->second->seats;
    std::string name = user.name;
    table.insert_or_assign(std::move(name), std::make_shared<const User>(std::move(user)));
  };
  for (User& user : users) add(std::move(user));
  if (const auto known = users_.find("default"); known != users_.end()) table.insert(*known);
  if (!table.contains("default")) add(NewDefaultUser(rule_context()));
  users_ = std::move(table);
  VARVE_ASSERT(users_.contains("default"));
  Publish();
}

void UserTable::SetDefaultPassword(std::string_view password) {
  const std::string given = ">" + std::string(password);
  const std::string_view rules[] = {
      "resetpass", password.empty() ? std::string_view("nopass") : std::string_view(given)};
  const absl::Status set = Set("default", rules);
  VARVE_ASSERT(set.ok());
  VARVE_ASSERT(login_needed() == !password.empty() || !Default()->on);
}

UserPointer UserTable::LogIn(std::string_view name, std::string_view password) const {
  const std::string hash = PasswordHash(password);
  const UserPointer user = Find(name);
  if (user == nullptr) return nullptr;
  const bool knows_password = HasPasswordHash(user->passwords, hash);
  return user->on && (user->nopass || knows_password) ? user : nullptr;
}

}  // namespace varve
