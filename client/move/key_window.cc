#include "client/move/key_window.h"

#include <utility>

namespace varve {

void KeyWindow::Put(const std::string& space, MovedRecord record) {
  bytes_ += record.bytes();
  std::string key = record.key;
  spaces_[space].insert_or_assign(std::move(key), std::move(record));
}

void KeyWindow::Delete(const std::string& space, const std::string& key) {
  bytes_ += key.size();
  spaces_[space].insert_or_assign(key, std::nullopt);
}

void KeyWindow::Clear() {
  spaces_.clear();
  bytes_ = 0;
}

}  // namespace varve
