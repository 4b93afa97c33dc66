#include "server/ingests/ingest_table.h"

#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

absl::Status IngestTable::Begin(std::shared_ptr<OpenIngest> opened) {
  absl::MutexLock using_it(&opened->mutex);  // others find it once it is complete
  {
    absl::MutexLock lock(&mutex_);
    if (ingests_.contains(opened->id))
      return absl::AlreadyExistsError("an ingest of this id is under way");
    if (ingests_.size() >= kMostIngests) {
      return absl::FailedPreconditionError(fmt::format(
          "{} ingests are under way, and no more may be: commit or abort one", ingests_.size()));
    }
    ingests_.emplace(opened->id, opened);
  }
  absl::StatusOr<std::unique_ptr<Ingest>> begun = BeginIngest(&store_, opened->options);
  if (begun.ok()) {
    opened->ingest = *std::move(begun);
    return absl::OkStatus();
  }
  Remove(*opened);
  return begun.status();
}

std::shared_ptr<OpenIngest> IngestTable::Find(std::string_view id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = ingests_.find(id);
  return found == ingests_.end() ? nullptr : found->second;
}

void IngestTable::Remove(const OpenIngest& opened) {
  std::shared_ptr<OpenIngest> removed;
  absl::MutexLock lock(&mutex_);
  const auto found = ingests_.find(opened.id);
  if (found == ingests_.end() || found->second.get() != &opened) return;
  removed = std::move(found->second);
  ingests_.erase(found);
}

std::vector<std::shared_ptr<OpenIngest>> IngestTable::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<OpenIngest>> all;
  for (const auto& [id, opened] : ingests_) all.push_back(opened);
  return all;
}

void IngestTable::EndIdle(OpenIngest::Time now) {
  for (const std::shared_ptr<OpenIngest>& opened : All()) {
    std::unique_ptr<Ingest> ended;
    if (!opened->mutex.TryLock()) continue;  // it is in use
    if (now - opened->last_use > kLongestRest) ended = std::move(opened->ingest);
    opened->mutex.Unlock();
    if (ended != nullptr) Remove(*opened);
  }
}

bool IngestTable::any() const {
  absl::MutexLock lock(&mutex_);
  return !ingests_.empty();
}

}  // namespace varve
