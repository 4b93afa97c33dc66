#include "varve/namespace_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr const char* kMissing = "varve.namespace.missing";
constexpr const char* kFull = "varve.namespace.full";
constexpr char kOfKeys = 'k', kOfBytes = 'b';  // before the namespace's id
constexpr const char* kStoreFull = "varve.store.full";
constexpr const char* kCrossGroup = "varve.group.crossed";

absl::Status Marked(absl::Status status, const char* mark) {
  status.SetPayload(mark, absl::Cord());
  return status;
}

}  // namespace

absl::Status NoSuchNamespace(NamespaceId id) {
  return Marked(absl::InvalidArgumentError(fmt::format("namespace {} does not exist", id)),
                kMissing);
}

bool IsNoSuchNamespace(const absl::Status& status) {
  return status.GetPayload(kMissing).has_value();
}

absl::Status NamespaceIsFull(const NamespaceQuota& quota, const std::string& message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  const char of = quota.of == NamespaceQuota::Of::kKeys ? kOfKeys : kOfBytes;
  status.SetPayload(kFull, absl::Cord(fmt::format("{}{}", of, quota.space)));
  return status;
}

bool IsNamespaceFull(const absl::Status& status) { return status.GetPayload(kFull).has_value(); }

std::optional<NamespaceQuota> FullQuota(const absl::Status& status) {
  const auto payload = status.GetPayload(kFull);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  NamespaceQuota quota;
  if (text.empty() || !absl::SimpleAtoi(text.substr(1), &quota.space)) return std::nullopt;
  quota.of = text.front() == kOfKeys ? NamespaceQuota::Of::kKeys : NamespaceQuota::Of::kBytes;
  return quota;
}

absl::Status StoreIsFull(const std::string& message) {
  return Marked(absl::ResourceExhaustedError(message), kStoreFull);
}

absl::Status CrossGroup(const std::string& message) {
  return Marked(absl::FailedPreconditionError(message), kCrossGroup);
}

bool IsCrossGroup(const absl::Status& status) { return status.GetPayload(kCrossGroup).has_value(); }

bool IsStoreFull(const absl::Status& status) { return status.GetPayload(kStoreFull).has_value(); }

}  // namespace varve
