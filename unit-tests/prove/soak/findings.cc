#include "unit-tests/prove/soak/findings.h"

#include <utility>

#include "fmt/format.h"

namespace varve::prove {
namespace {

constexpr size_t kKept = 30;

}  // namespace

void Findings::Add(std::string what) {
  const absl::MutexLock lock(&mutex_);
  ++count_;
  if (texts_.size() < kKept) texts_.push_back(std::move(what));
}

void Findings::AddStatus(std::string_view what, const absl::Status& status) {
  if (!status.ok()) Add(fmt::format("{}: {}", what, status.ToString()));
}

void Findings::CountRefusal(std::string_view reply) {
  const absl::MutexLock lock(&mutex_);
  ++refusals_[std::string(reply.substr(0, reply.find(' ')))];
}

bool Findings::CountIfRefused(const absl::Status& status) {
  const std::string text(status.message());
  if (status.ok() || !IsFullDirectory(text)) return false;
  CountRefusal(text);
  return true;
}

bool Findings::any() const {
  const absl::MutexLock lock(&mutex_);
  return count_ > 0;
}

std::vector<std::string> Findings::Texts() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> texts = texts_;
  if (count_ > texts.size()) texts.push_back(fmt::format("{} more", count_ - texts.size()));
  return texts;
}

std::map<std::string, uint64_t> Findings::Refusals() const {
  const absl::MutexLock lock(&mutex_);
  return refusals_;
}

bool IsFullDirectory(std::string_view error) {
  return error.starts_with("MISCONF") && error.find("max-disk-bytes") != std::string_view::npos;
}

}  // namespace varve::prove
