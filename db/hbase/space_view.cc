#include "db/hbase/space_view.h"

#include <utility>

#include "fmt/format.h"
#include "varve/namespace_status.h"

namespace varve {

PlacedSpace::PlacedSpace(const std::string& main_table, const KeyPlace& place)
    : table(TableOf(main_table, place.grouping).name),
      prefix(RowPrefix(place.generation, LeftOutByte(place.grouping))),
      behind(RowPrefix(place.generation + 1, LeftOutByte(place.grouping))),
      grouping(place.grouping) {}

void SpaceView::Show(SpaceCatalog catalog, SequenceNumber version) {
  auto shown = std::make_shared<const SpaceCatalog>(std::move(catalog));
  const absl::MutexLock lock(&mutex_);
  if (catalog_ != nullptr && version <= version_) return;
  catalog_.swap(shown);
  version_ = version;
}

void SpaceView::TrustUntil(uint64_t monotonic_nanos) {
  const absl::MutexLock lock(&mutex_);
  trusted_until_ = monotonic_nanos;
}

bool SpaceView::IsTrusted() const {
  const absl::MutexLock lock(&mutex_);
  return clock_->MonotonicNanos() < trusted_until_;
}

absl::StatusOr<PlacedSpace> SpaceView::Find(NamespaceId id) const {
  if (!IsTrusted()) {
    return absl::UnavailableError(fmt::format(
        "this server could not read the rows of table {} that all servers share for so long that "
        "its list of namespaces may be out of date; it goes on when the cluster answers",
        table_));
  }
  const std::shared_ptr<const SpaceCatalog> catalog = this->catalog();
  const SpaceCatalog::Space* const space = catalog->Find(id);
  if (space == nullptr) return NoSuchNamespace(id);
  return PlacedSpace(table_, space->place());
}

std::shared_ptr<const SpaceCatalog> SpaceView::catalog() const {
  const absl::MutexLock lock(&mutex_);
  return catalog_;
}

SequenceNumber SpaceView::version() const {
  const absl::MutexLock lock(&mutex_);
  return version_;
}

}  // namespace varve
