#include "server/clients/password.h"

#include <utility>

namespace varve {

void Password::Set(std::string password) {
  absl::MutexLock lock(&mutex_);
  password_ = std::move(password);
  needed_.store(!password_.empty(), std::memory_order_relaxed);
}

bool Password::Matches(std::string_view given) const {
  absl::MutexLock lock(&mutex_);
  if (password_.empty()) return true;
  // Whichever byte differs first, all are looked at.
  size_t different = given.size() ^ password_.size();
  for (size_t i = 0; i < given.size(); ++i) {
    different |= static_cast<unsigned char>(given[i] ^ password_[i % password_.size()]);
  }
  return different == 0;
}

}  // namespace varve
