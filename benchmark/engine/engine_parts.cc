#include "benchmark/engine/engine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_split.h"
#include "benchmark/engine/engine_measurements.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

namespace varve::bench {
namespace {

// Below it an engine's process as such, before it holds any data, is most of what is in memory.
constexpr uint64_t kLeastMemory = 64u << 20;

}  // namespace

Parts::Parts(std::vector<Row> rows, std::string directory, std::vector<std::string> command)
    : rows_(std::move(rows)), directory_(std::move(directory)), command_(std::move(command)) {}

std::optional<Figures> Parts::Measure(const Row& row, const Engine& engine, std::string* why) {
  if (!engine.missing.empty()) {
    *why = "not measured: " + engine.missing;
    return std::nullopt;
  }
  if (row.short_of_memory() && row.memory.total < kLeastMemory) {
    *why = fmt::format("needs a larger --scale: there must be at least {} MiB to limit",
                       kLeastMemory >> 20);
    return std::nullopt;
  }
  std::deque<Figures>& known = known_[{row.id, engine.id}];
  const Key part{row.part, engine.id};
  if (known.empty() && !failed_.contains(part)) Run(row, engine);
  if (known.empty()) {
    *why = failed_.contains(part) ? failed_.at(part) : "not run";
    return std::nullopt;
  }
  Figures figures = std::move(known.front());
  known.pop_front();
  return figures;
}

void Parts::Run(const Row& row, const Engine& engine) {
  if (row.prepared()) {
    const std::string failure = Prepare(row, engine);
    if (!failure.empty()) return NoteFailure(row, engine, failure);
  }
  const MemoryLimit limit(row.memory.total);
  if (limit.group().empty()) limited_ = false;
  std::string failure;
  const std::string printed = Start(row, engine, "measure", limit.group(), &failure);
  if (row.passes()) RemoveDirectory(UsedDirectory(directory_, row, engine));
  if (failure == kKilled && limit.WasExceeded()) failure += ": out of memory";
  if (!failure.empty()) NoteFailure(row, engine, failure);
  std::istringstream lines(printed);
  std::string id;
  std::string name;
  double value = 0;
  std::map<std::string, Figures> found;
  while (lines >> id >> name >> value) found[id][name] = value;
  for (auto& [row_id, figures] : found) known_[{row_id, engine.id}].push_back(std::move(figures));
}

// Fills the row's store, unless that was done, and gives the row's process its copy. What other
// rows needed goes.
std::string Parts::Prepare(const Row& row, const Engine& engine) {
  const std::string store = PreparedDirectory(directory_, row, engine);
  if (!prepared_.contains(store)) {
    std::erase_if(prepared_, [&](const std::string& other) {
      const std::string ending = other.substr(other.rfind("-prepared-"));
      if (store.ends_with(ending)) return false;
      RemoveDirectory(other);
      return true;
    });
    std::string failure;
    Start(row, engine, "prepare", "", &failure);
    if (!failure.empty()) {
      RemoveDirectory(store);
      return failure + ", while its store was filled";
    }
    prepared_.insert(store);
  }
  const std::string used = UsedDirectory(directory_, row, engine);
  if (used != store) {
    RemoveDirectory(used);
    std::error_code error;
    std::filesystem::copy(store, used, std::filesystem::copy_options::recursive, error);
    if (error) return fmt::format("failed: its store is not copied: {}", error.message());
    DropFromPageCache(store);
  }
  DropFromPageCache(used);
  return "";
}

// Keeps the reason, and removes what the process left, but for stores of other parts.
void Parts::NoteFailure(const Row& row, const Engine& engine, const std::string& reason) {
  failed_[{row.part, engine.id}] = reason;
  if (!reason.starts_with(kKilled)) has_failed_ = true;
  fmt::print(stderr, "{}, {}: {}\n", row.part, engine.title, reason);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(engine.id + "-") && name.find("-prepared-") == std::string::npos)
      left.push_back(entry.path().string());
  }
  for (const std::string& path : left) RemoveDirectory(path);
}

std::string Parts::Start(const Row& row, const Engine& engine, const std::string& step,
                         const std::string& group, std::string* failure) {
  std::vector<std::string> arguments = command_;
  arguments.push_back(fmt::format("--apart={}|{}|{}", row.part, engine.id, step));
  arguments.push_back("--memory_group=" + group);
  arguments.push_back("--dir=" + directory_);
  return CaptureWithFailure(arguments, failure);
}

int RunPart(const std::vector<Row>& rows, const std::vector<Engine>& engines,
            const std::string& what, const std::string& directory, bool defaults,
            double rest_seconds) {
  const std::vector<std::string> words = absl::StrSplit(what, '|');
  if (words.size() != 3) Fail("--apart wants PART|ENGINE|STEP");
  std::vector<Row> chosen;
  for (const Row& row : rows) {
    if (row.part == words[0]) chosen.push_back(row);
  }
  const auto engine = std::find_if(engines.begin(), engines.end(),
                                   [&](const Engine& one) { return one.id == words[1]; });
  if (chosen.empty() || engine == engines.end()) Fail("--apart names nothing: " + what);
  Measurements measurements(
      {.directory = directory, .defaults = defaults, .rest_seconds = rest_seconds}, *engine);
  if (words[2] == "prepare") {
    measurements.Prepare(chosen.front());
    return 0;
  }
  measurements.Measure(chosen, [](const Row& row, const Figures& figures) {
    for (const auto& [name, value] : figures) fmt::print("{} {} {}\n", row.id, name, value);
    std::fflush(stdout);
  });
  return 0;
}

double EstimateMinutes(const std::vector<Row>& rows, size_t engines) {
  constexpr double kStart = 1;  // of a process, with its checks
  double seconds = 0;
  std::set<std::string> parts;
  for (const Row& row : rows) {
    seconds += row.seconds();
    if (parts.insert(row.part).second) seconds += kStart;
  }
  return seconds * static_cast<double>(engines) / 60;
}

}  // namespace varve::bench
