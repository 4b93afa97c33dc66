#include "server/tracking/written_keys.h"

#include <algorithm>

#include "absl/status/status.h"
#include "util/base/assert.h"

namespace varve {
namespace {

class Collector final : public WriteBatch::OperationVisitor {
 public:
  explicit Collector(WrittenKeys* written) : written_(*written) {}

  absl::Status Put(NamespaceId space, std::string_view key, std::string_view,
                   const PutExtras&) override {
    written_.AddKey(space, key);
    return absl::OkStatus();
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause) override {
    written_.AddKey(space, key);
    return absl::OkStatus();
  }
  absl::Status DeleteRange(NamespaceId space, std::string_view begin,
                           std::string_view end) override {
    written_.AddRange(space, begin, end);
    return absl::OkStatus();
  }
  absl::Status ClearNamespace(NamespaceId space) override {
    written_.AddSpace(space);
    return absl::OkStatus();
  }
  // Nobody can have read what was not there.
  absl::Status CreateNamespace(const NamespaceDescription&) override { return absl::OkStatus(); }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription&) override {
    return absl::OkStatus();
  }
  absl::Status CloneNamespaceAt(NamespaceId, SequenceNumber, const NamespaceDescription&) override {
    return absl::OkStatus();
  }
  // Changes no value.
  absl::Status AlterNamespace(const NamespaceDescription&) override { return absl::OkStatus(); }
  absl::Status DropNamespace(NamespaceId space) override {
    written_.AddSpace(space);
    return absl::OkStatus();
  }
  absl::Status SwapNamespaces(NamespaceId one, NamespaceId other) override {
    written_.AddSpace(one);
    written_.AddSpace(other);
    return absl::OkStatus();
  }

 private:
  WrittenKeys& written_;
};

}  // namespace

void WrittenKeys::AddKey(NamespaceId space, std::string_view key) {
  if (keys_.size() == kMostKeys) {
    for (const Key& known : keys_) spaces_.insert(known.first);
    keys_.clear();
  }
  if (!spaces_.contains(space)) keys_.emplace_back(space, key);
}

void WrittenKeys::AddRange(NamespaceId space, std::string_view begin, std::string_view end) {
  if (ranges_.size() == kMostRanges) {
    for (const Range& known : ranges_) spaces_.insert(known.space);
    ranges_.clear();
  }
  if (!spaces_.contains(space)) ranges_.push_back({space, std::string(begin), std::string(end)});
}

void WrittenKeys::AddBatch(const WriteBatch& batch) {
  Collector collector(this);
  // A batch with a defect is not committed.
  (void)batch.ForEachOperation(&collector);
}

void WrittenKeys::Sort() {
  std::sort(keys_.begin(), keys_.end());
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
}

}  // namespace varve
