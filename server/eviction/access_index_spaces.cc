// The namespaces of which an access index has a record: its keys 's' (access_index.h).
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/eviction/access_index.h"
#include "util/base/status.h"
#include "varve/iterator.h"

namespace varve {
namespace {

constexpr char kSpace = 's';
constexpr size_t kSpaceKeySize = 1 + 4;

}  // namespace

absl::StatusOr<std::vector<NamespaceId>> AccessIndex::ReadSpaces() const {
  ReadOptions options;
  options.wait_until_durable = false;
  const std::string begin(1, kSpace), end(1, kSpace + 1);
  const std::unique_ptr<Iterator> records = store_->NewIterator(options, begin, end, nullptr);
  std::vector<NamespaceId> spaces;
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    const std::string_view key = records->key();
    if (key.size() != kSpaceKeySize) continue;
    NamespaceId space = 0;
    for (const char byte : key.substr(1)) space = space << 8 | static_cast<uint8_t>(byte);
    spaces.push_back(space);
  }
  VARVE_RETURN_IF_ERROR(Checked(records->status()));
  return spaces;
}

}  // namespace varve
