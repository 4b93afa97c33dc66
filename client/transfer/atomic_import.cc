#include "client/transfer/atomic_import.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/console/interrupt.h"
#include "client/console/progress.h"
#include "client/console/record_reader.h"
#include "client/console/text.h"
#include "client/pipeline.h"
#include "client/reply_status.h"
#include "client/transfer/pair_sorter.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kPairsTogether = 256;                 // of one request
constexpr size_t kBytesTogether = size_t{256} << 10;   // and their bytes
constexpr size_t kIngestsAhead = 64;                   // requests under way
constexpr size_t kIngestBytesAhead = size_t{8} << 20;  // and their bytes

// Returns the bound behind all keys with the prefix.
std::string BoundBehind(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return "+";
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return "(" + prefix;
}

class AtomicImporter {
 public:
  AtomicImporter(const CommandLine& line, FileFormat format)
      : line_(line), format_(format), path_(line.words[1]) {}

  absl::Status Run() {
    VARVE_ASSIGN_OR_RETURN(opened_, OpenReader(format_, path_, line_.force));
    VARVE_ASSIGN_OR_RETURN(pipeline_, Pipeline::Connect(line_.connection));
    VARVE_RETURN_IF_ERROR(Begin());
    const absl::Status added = line_.sort ? AddSorted() : AddAsRead();
    if (!added.ok()) {
      Abort();
      return absl::Status(added.code(),
                          fmt::format("{}; nothing was imported", std::string(added.message())));
    }
    VARVE_ASSIGN_OR_RETURN(const Reply version, Ask({"INGEST", "COMMIT", id_}));
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - begun_).count();
    fmt::print(stderr, "imported {} keys in {:.1f} s, {:.0f}/s, as version {}\n", keys_, seconds,
               static_cast<double>(keys_) / std::max(seconds, 0.001), version.integer);
    const ImportNotes& notes = opened_.reader->notes();
    if (notes.expired > 0)
      fmt::print(stderr, "keys that have expired, left out: {}\n", notes.expired);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Reply> Ask(const std::vector<std::string_view>& words) {
    pipeline_->Send(words, WhenLost::kReport);
    VARVE_ASSIGN_OR_RETURN(Reply reply, pipeline_->Receive());
    VARVE_RETURN_IF_ERROR(StatusOf(reply));
    return reply;
  }

  absl::Status Begin() {
    id_ = fmt::format("import-{:016x}",
                      std::random_device()() * (uint64_t{1} << 32) + std::random_device()());
    std::vector<std::string_view> words = {"INGEST", "BEGIN", id_};
    const std::string min = line_.replace_prefix.empty() ? "-" : "[" + line_.replace_prefix;
    const std::string max = BoundBehind(line_.replace_prefix);
    if (line_.replaces) words.insert(words.end(), {"REPLACE", min, max});
    return Ask(words).status();
  }

  // An ingest that stays behind, as the connection is lost, ends by itself.
  void Abort() {
    while (pipeline_->outstanding() > 0) pipeline_->Receive().IgnoreError();
    Ask({"INGEST", "ABORT", id_}).IgnoreError();
  }

  // Calls `take` with the key and the value of each record.
  template <typename Take>
  absl::Status Read(const char* verb, const Take& take) {
    const Interrupt interrupt;
    Progress progress(verb, opened_.size, line_.progress);
    RecordReader& reader = *opened_.reader;
    ImportRecord record;
    for (uint64_t records = 0;; ++records) {
      if (interrupt.happened()) return absl::CancelledError("interrupted");
      VARVE_ASSIGN_OR_RETURN(const bool found, reader.Next(&record));
      if (!found) break;
      VARVE_RETURN_IF_ERROR(Check(record));
      if (record.words[0] == "SET") VARVE_RETURN_IF_ERROR(take(record.words[1], record.words[2]));
      progress.Update(reader.offset(), records, reader.offset());
    }
    const ImportNotes& notes = reader.notes();
    if (!notes.warning.empty()) return absl::DataLossError(notes.warning);
    if (notes.left_out.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{}: holds what can't be imported: {}", path_, notes.left_out.begin()->first));
  }

  absl::Status Check(const ImportRecord& record) const {
    std::string wrong = record.wrong;
    // What has expired was read as a DEL, of a key that this import does not have.
    const bool is_expired = !record.words.empty() && record.words[0] == "DEL";
    if (wrong.empty() && !is_expired) {
      if (record.words.empty() || record.words[0] != "SET") {
        wrong = "a command that is no SET, which --atomic can't take";
      } else if (record.words.size() != 3) {
        const bool has_metadata = record.words[3] == "META";
        wrong = has_metadata ? "a key with metadata, which --atomic can't take"
                             : "a key that expires, which --atomic can't take";
      }
    }
    if (wrong.empty()) return absl::OkStatus();
    const std::string place = record.line > 0 ? fmt::format("line {}", record.line)
                                              : fmt::format("offset {}", record.offset);
    return absl::FailedPreconditionError(fmt::format("{}: {}: {}", path_, place, Escaped(wrong)));
  }

  absl::Status AddAsRead() {
    VARVE_RETURN_IF_ERROR(Read("importing", [this](std::string_view key, std::string_view value) {
      return Add(key, value);
    }));
    return Drain();
  }

  absl::Status AddSorted() {
    PairSorter sorter;
    VARVE_RETURN_IF_ERROR(Read("sorting  ", [&](std::string_view key, std::string_view value) {
      return sorter.Add(key, value);
    }));
    VARVE_RETURN_IF_ERROR(sorter.Finish());
    const Interrupt interrupt;
    std::string key, value;
    for (;;) {
      if (interrupt.happened()) return absl::CancelledError("interrupted");
      VARVE_ASSIGN_OR_RETURN(const bool found, sorter.Next(&key, &value));
      if (!found) return Drain();
      VARVE_RETURN_IF_ERROR(Add(key, value));
    }
  }

  absl::Status Add(std::string_view key, std::string_view value) {
    waiting_.emplace_back(key);
    waiting_.emplace_back(value);
    waiting_bytes_ += key.size() + value.size();
    if (waiting_.size() < 2 * kPairsTogether && waiting_bytes_ < kBytesTogether)
      return absl::OkStatus();
    return SendWaiting();
  }

  absl::Status SendWaiting() {
    if (waiting_.empty()) return absl::OkStatus();
    std::vector<std::string_view> words = {"INGEST", "ADD", id_};
    words.insert(words.end(), waiting_.begin(), waiting_.end());
    pipeline_->Send(words, WhenLost::kReport);
    keys_ += waiting_.size() / 2;
    waiting_.clear();
    waiting_bytes_ = 0;
    while (pipeline_->outstanding() >= kIngestsAhead ||
           pipeline_->outstanding_bytes() >= kIngestBytesAhead)
      VARVE_RETURN_IF_ERROR(TakeReply());
    return absl::OkStatus();
  }

  absl::Status TakeReply() {
    VARVE_ASSIGN_OR_RETURN(const Reply reply, pipeline_->Receive());
    return StatusOf(reply);
  }

  absl::Status Drain() {
    VARVE_RETURN_IF_ERROR(SendWaiting());
    while (pipeline_->outstanding() > 0) VARVE_RETURN_IF_ERROR(TakeReply());
    return absl::OkStatus();
  }

  const CommandLine& line_;
  const FileFormat format_;
  const std::string path_;
  const SteadyClock::time_point begun_ = SteadyClock::now();
  OpenedReader opened_;
  std::unique_ptr<Pipeline> pipeline_;
  std::string id_;
  std::vector<std::string> waiting_;  // keys and values of the next request
  size_t waiting_bytes_ = 0;
  uint64_t keys_ = 0;
};

}  // namespace

absl::Status ImportAtomically(const CommandLine& line, FileFormat format) {
  return AtomicImporter(line, format).Run();
}

}  // namespace varve
