#include "unit-tests/prove/soak/load.h"

#include <map>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace varve::prove {
namespace {

constexpr int kWriters = 3;
// Bytes of a key and its value, on average.
constexpr uint64_t kRecordBytes = 1000;
// Where keys are evicted, owners write this many for each key that there is room for.
constexpr uint64_t kCrowd = 3;
constexpr size_t kFleetingKeys = 2000;

}  // namespace

// Owner 0 has the keys that TrackingReader caches.
Load::Load(const Shares& shares, uint64_t seed, Scene* scene)
    : scene_(*scene), seed_(seed), past_(seed), tracking_(seed), housekeeper_(seed) {
  for (int i = 0; i < kWriters; ++i)
    writers_.push_back(std::make_unique<ExactWriter>(i, seed * 1000 + static_cast<uint64_t>(i)));
  for (int i = 0; i < 2; ++i) AddOwner({.place = kZipped, .depth = 8}, shares.zipped / 2);
  AddOwner({.place = kQuick, .depth = 16}, shares.quick);
  for (int i = 0; i < 2; ++i) {
    AddOwner({.place = kCache, .fate = Fate::kMayGo, .filler = Filler::kBytes, .depth = 16},
             kCrowd * shares.cache / 2);
    AddOwner({.place = kDatabase, .fate = Fate::kMayGo, .filler = Filler::kBytes, .depth = 16},
             kCrowd * shares.database / 2);
  }
  AddOwner({.place = kFleeting, .fate = Fate::kExpires, .depth = 8}, kFleetingKeys * kRecordBytes);
}

void Load::AddOwner(OwnerOptions options, uint64_t bytes) {
  options.id = static_cast<int>(owners_.size());
  options.seed = seed_;
  options.keys = bytes / kRecordBytes + 300;
  owners_.push_back(std::make_unique<KeyOwner>(std::move(options), scene_.findings));
}

void Load::Start() {
  for (const auto& writer : writers_)
    threads_.emplace_back([this, &writer] { writer->Run(&scene_); });
  for (const auto& owner : owners_)
    threads_.emplace_back([this, &owner] { owner->Run(scene_.primary, scene_.ended); });
  threads_.emplace_back([this] { past_.Run(&scene_); });
  threads_.emplace_back([this] { follower_.Run(&scene_); });
  threads_.emplace_back([this] { tracking_.Run(&scene_); });
  threads_.emplace_back([this] { housekeeper_.Run(&scene_); });
}

void Load::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Load::Check(uint16_t port) {
  for (const auto& writer : writers_)
    scene_.findings->AddStatus("a writer at the end", writer->Check(port));
  for (const auto& owner : owners_) {
    scene_.findings->AddStatus(
        fmt::format("owner {} in {} at the end", owner->options().id, owner->options().place),
        owner->Check(port));
  }
}

void Load::CheckFeed() {
  std::map<std::string, uint64_t> deletes;  // by namespace
  for (const auto& owner : owners_) {
    const OwnerOptions& options = owner->options();
    deletes[options.place] += owner->deletes();
    const uint64_t told = scene_.mirror->SetsOf(options.id);
    if (told != owner->sets())
      scene_.findings->Add(fmt::format("owner {} was acknowledged {} values and the feed told {}",
                                       options.id, owner->sets(), told));
  }
  for (const auto& [place, count] : deletes) {
    const uint64_t told = scene_.mirror->DeletesIn(place);
    if (told != count)
      scene_.findings->Add(
          fmt::format("{} keys of {} were deleted and the feed told {}", count, place, told));
  }
}

uint64_t Load::requests() const {
  uint64_t sum = 0;
  for (const auto& writer : writers_) sum += writer->requests();
  for (const auto& owner : owners_) sum += owner->requests();
  return sum;
}

uint64_t Load::oracle_checks() const {
  uint64_t sum = 0;
  for (const auto& writer : writers_) sum += writer->checks();
  return sum;
}

uint64_t Load::vanished() const {
  uint64_t sum = 0;
  for (const auto& owner : owners_) sum += owner->vanished();
  return sum;
}

}  // namespace varve::prove
