#include "client/transfer/pair_sorter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status Failed(std::string_view what) {
  return absl::InternalError(fmt::format("sorting: a temporary file in {}: {}: {}",
                                         std::filesystem::temp_directory_path().string(), what,
                                         std::strerror(errno)));
}

bool WriteAll(std::FILE* file, std::string_view bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

}  // namespace

absl::Status PairSorter::Add(std::string_view key, std::string_view value) {
  pairs_.push_back(
      {bytes_.size(), static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())});
  bytes_.append(key).append(value);
  return bytes_.size() + pairs_.size() * sizeof(Pair) < run_bytes_ ? absl::OkStatus() : WriteRun();
}

absl::Status PairSorter::WriteRun() {
  if (pairs_.empty()) return absl::OkStatus();
  std::stable_sort(pairs_.begin(), pairs_.end(),
                   [this](const Pair& a, const Pair& b) { return KeyOf(a) < KeyOf(b); });
  std::string path = (std::filesystem::temp_directory_path() / "varve-sort-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  if (descriptor < 0) return Failed("can't be made");
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  Run run{.file = std::unique_ptr<std::FILE, CloseFile>(::fdopen(descriptor, "w+b"))};
  if (run.file == nullptr) return Failed("can't be used");
  std::setvbuf(run.file.get(), nullptr, _IOFBF, size_t{64} << 10);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = pairs_[i];
    if (i + 1 < pairs_.size() && KeyOf(pairs_[i + 1]) == KeyOf(pair)) continue;
    const uint32_t sizes[] = {pair.key_size, pair.value_size};
    const size_t size = size_t{pair.key_size} + pair.value_size;
    if (!WriteAll(run.file.get(), {reinterpret_cast<const char*>(sizes), sizeof(sizes)}) ||
        !WriteAll(run.file.get(), std::string_view(bytes_).substr(pair.offset, size)))
      return Failed("can't be written");
  }
  if (std::fflush(run.file.get()) != 0) return Failed("can't be written");
  std::rewind(run.file.get());
  runs_.push_back(std::move(run));
  bytes_.clear();
  pairs_.clear();
  return absl::OkStatus();
}

absl::Status PairSorter::Finish() {
  VARVE_RETURN_IF_ERROR(WriteRun());
  std::string().swap(bytes_);
  std::vector<Pair>().swap(pairs_);
  for (size_t i = 0; i < runs_.size(); ++i) {
    VARVE_RETURN_IF_ERROR(ReadPair(&runs_[i]));
    if (!runs_[i].ended) heap_.push_back(i);
  }
  std::make_heap(heap_.begin(), heap_.end(),
                 [this](size_t a, size_t b) { return ComesLater(a, b); });
  return absl::OkStatus();
}

absl::Status PairSorter::ReadPair(Run* run) {
  uint32_t sizes[2];
  const size_t read = std::fread(sizes, 1, sizeof(sizes), run->file.get());
  run->ended = read == 0 && std::feof(run->file.get()) != 0;
  if (run->ended) return absl::OkStatus();
  if (read != sizeof(sizes)) return Failed("can't be read");
  run->key.resize(sizes[0]);
  run->value.resize(sizes[1]);
  for (std::string* bytes : {&run->key, &run->value}) {
    if (std::fread(bytes->data(), 1, bytes->size(), run->file.get()) != bytes->size())
      return Failed("can't be read");
  }
  return absl::OkStatus();
}

bool PairSorter::ComesLater(size_t a, size_t b) const {
  if (const int order = runs_[a].key.compare(runs_[b].key); order != 0) return order > 0;
  return a < b;
}

absl::StatusOr<bool> PairSorter::Next(std::string* key, std::string* value) {
  const auto later = [this](size_t a, size_t b) { return ComesLater(a, b); };
  bool found = false;
  while (!heap_.empty()) {
    Run& first = runs_[heap_.front()];
    const bool is_older_one = found && first.key == *key;
    if (found && !is_older_one) break;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    if (!is_older_one) {
      *key = first.key;
      std::swap(*value, first.value);
      found = true;
    }
    VARVE_RETURN_IF_ERROR(ReadPair(&first));
    first.ended ? heap_.pop_back() : std::push_heap(heap_.begin(), heap_.end(), later);
  }
  return found;
}

}  // namespace varve
