#include "client/transfer/import.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/console/interrupt.h"
#include "client/console/progress.h"
#include "client/console/record_reader.h"
#include "client/console/text.h"
#include "client/pipeline.h"
#include "client/reply_status.h"
#include "client/transfer/atomic_import.h"
#include "client/transfer/formats.h"
#include "client/transfer/import_state.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kAhead = 2000;                  // requests under way
constexpr size_t kAheadBytes = size_t{8} << 20;  // and their bytes
constexpr std::chrono::milliseconds kCheckpointEvery{1000};

class Importer {
 public:
  Importer(const CommandLine& line, FileFormat format)
      : line_(line),
        format_(format),
        path_(line.words[1]),
        state_path_(ImportState::PathFor(path_)) {}

  absl::Status Run() {
    if (line_.resume) VARVE_RETURN_IF_ERROR(LoadState());
    if (format_ == FileFormat::kRedis) VARVE_RETURN_IF_ERROR(CheckWhole());
    VARVE_ASSIGN_OR_RETURN(opened_, OpenReader(format_, path_, line_.force));
    if (line_.resume && state_.size != opened_.size) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: has {} bytes, but had {} when the import began", path_, opened_.size, state_.size));
    }
    state_.size = opened_.size;
    VARVE_ASSIGN_OR_RETURN(pipeline_, Pipeline::Connect(line_.connection));
    const absl::Status status = Import();
    Summarize();
    if (!status.ok()) return Interrupted(status);
    std::error_code ignored;
    if (saved_ || line_.resume) std::filesystem::remove(state_path_, ignored);
    if (errors_ > 0)
      return absl::FailedPreconditionError(
          fmt::format("{} records could not be imported", errors_));
    // Redis itself takes an AOF that was cut so; what export wrote has no such end.
    if (format_ == FileFormat::kResp && !opened_.reader->notes().warning.empty()) {
      return absl::DataLossError("the file is cut short; what it still holds was imported");
    }
    return absl::OkStatus();
  }

 private:
  // Where a request came from.
  struct Place {
    uint64_t offset;
    uint64_t line;
    bool repeatable;
    bool is_key;
  };

  bool resumable() const { return path_ != "-" && state_error_.empty(); }

  absl::Status LoadState() {
    if (path_ == "-") return absl::InvalidArgumentError("--resume needs a file");
    VARVE_ASSIGN_OR_RETURN(state_, ImportState::Load(state_path_));
    if (!state_.at_risk || line_.force) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{}: the import ended among commands that build on an old value (INCR, APPEND, "
                    "...), some of which may have "
                    "been executed; import the file anew into an empty server, or use --resume "
                    "--force, which may execute them "
                    "twice",
                    path_));
  }

  // Reads everything once, so that a damaged file is found before the first key is written.
  absl::Status CheckWhole() {
    VARVE_ASSIGN_OR_RETURN(OpenedReader opened, OpenReader(format_, path_, line_.force));
    Progress progress("checking ", opened.size, line_.progress);
    ImportRecord record;
    for (uint64_t records = 0;; ++records) {
      VARVE_ASSIGN_OR_RETURN(const bool found, opened.reader->Next(&record));
      if (!found) {
        end_ = opened.reader->notes().open_transaction.value_or(end_);
        return absl::OkStatus();
      }
      progress.Update(opened.reader->offset(), records, opened.reader->offset());
    }
  }

  absl::Status Import() {
    const Interrupt interrupt;
    RecordReader& reader = *opened_.reader;
    if (state_.offset > 0) reader.Seek(state_.offset, state_.line);
    Progress progress("importing", opened_.size, line_.progress);
    progress.StartFrom(state_.offset, state_.keys, state_.offset);
    SteadyClock::time_point checkpoint = SteadyClock::now() + kCheckpointEvery;
    ImportRecord record;
    while (true) {
      const absl::StatusOr<bool> found = reader.Next(&record);
      if (found.ok() && *found && record.offset >= end_) continue;
      if (!found.ok() || !*found || interrupt.happened()) {
        VARVE_RETURN_IF_ERROR(Drain());
        const bool has_next = found.ok() && *found;
        if (const uint64_t reached = has_next ? record.offset : reader.offset();
            reached > state_.offset) {
          state_.offset = reached;
          state_.line = has_next ? record.line : reader.line();
        }
        return has_next ? absl::CancelledError("interrupted") : found.status();
      }
      if (record.offset < state_.offset) continue;  // a reader that can't seek
      if (!record.wrong.empty()) {
        CountError(record.offset, record.line, record.wrong);
        continue;
      }
      const bool new_risk = !record.repeatable && !state_.at_risk;
      if (new_risk || SteadyClock::now() >= checkpoint) {
        VARVE_RETURN_IF_ERROR(Checkpoint(record));
        checkpoint = SteadyClock::now() + kCheckpointEvery;
      }
      VARVE_RETURN_IF_ERROR(Send(record));
      progress.Update(reader.offset(), state_.keys, reader.offset());
    }
  }

  absl::Status Send(const ImportRecord& record) {
    pipeline_->Send(record.words, record.repeatable ? WhenLost::kResend : WhenLost::kReport);
    const bool is_key = record.words[0] == "SET";
    places_.push_back({record.offset, record.line, record.repeatable, is_key});
    while (pipeline_->outstanding() >= kAhead || pipeline_->outstanding_bytes() >= kAheadBytes) {
      VARVE_RETURN_IF_ERROR(TakeReply());
    }
    return absl::OkStatus();
  }

  // An error ends the import; the record's place stays the first of places_.
  absl::Status TakeReply() {
    const absl::StatusOr<Reply> reply = pipeline_->Receive();
    if (!reply.ok()) return reply.status();
    const absl::Status status = StatusOf(*reply);
    const bool refuses_all = absl::IsResourceExhausted(status) || absl::IsUnauthenticated(status);
    if (refuses_all) return status;
    const Place place = places_.front();
    places_.pop_front();
    if (!status.ok()) {
      CountError(place.offset, place.line, std::string(status.message()));
    } else if (place.is_key) {
      ++state_.keys;
      ++imported_;
    } else {
      ++commands_;
    }
    return absl::OkStatus();
  }

  absl::Status Drain() {
    while (pipeline_->outstanding() > 0) VARVE_RETURN_IF_ERROR(TakeReply());
    return absl::OkStatus();
  }

  // Everything before `next` is answered and noted.
  absl::Status Checkpoint(const ImportRecord& next) {
    VARVE_RETURN_IF_ERROR(Drain());
    state_.offset = next.offset;
    state_.line = next.line;
    state_.at_risk = !next.repeatable;
    SaveState();
    return absl::OkStatus();
  }

  // Where no state can be kept the import goes on, but can't be resumed.
  void SaveState() {
    if (!resumable()) return;
    const absl::Status saved = state_.Save(state_path_);
    saved_ |= saved.ok();
    if (!saved.ok()) state_error_ = std::string(saved.message());
  }

  void CountError(uint64_t offset, uint64_t line, const std::string& what) {
    if (errors_++ > 0) return;
    const std::string place = line > 0 ? fmt::format("line {} (offset {})", line, offset)
                                       : fmt::format("offset {}", offset);
    first_error_ = fmt::format("{}: {}: {}", path_, place, Escaped(what));
  }

  void Summarize() const {
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - begun_).count();
    fmt::print(stderr, "imported {} keys in {:.1f} s, {:.0f}/s\n", imported_, seconds,
               static_cast<double>(imported_) / std::max(seconds, 0.001));
    if (commands_ > 0) fmt::print(stderr, "executed {} other commands\n", commands_);
    if (pipeline_->reconnects() > 0)
      fmt::print(stderr, "the connection was lost, and made again: {}\n", pipeline_->reconnects());
    const ImportNotes& notes = opened_.reader->notes();
    for (const auto& [what, count] : notes.left_out)
      fmt::print(stderr, "left out: {}: {}\n", what, count);
    if (notes.with_expiry > 0) fmt::print(stderr, "keys with an expiry: {}\n", notes.with_expiry);
    if (notes.expired > 0)
      fmt::print(stderr, "keys that have expired, left out: {}\n", notes.expired);
    if (!notes.warning.empty()) fmt::print(stderr, "warning: {}\n", notes.warning);
    if (!state_error_.empty())
      fmt::print(stderr, "warning: --resume will not be possible: {}\n", state_error_);
    if (errors_ > 0) fmt::print(stderr, "{} errors, the first: {}\n", errors_, first_error_);
  }

  // Notes how far it came, and says how to go on.
  absl::Status Interrupted(const absl::Status& why) {
    if (!resumable()) return why;
    if (!places_.empty()) {
      state_.offset = places_.front().offset;
      state_.line = places_.front().line;
    }
    state_.at_risk = false;
    for (const Place& place : places_) state_.at_risk |= !place.repeatable;
    SaveState();
    if (!resumable()) return why;
    return absl::Status(why.code(), fmt::format("{}; --resume goes on at offset {}",
                                                std::string(why.message()), state_.offset));
  }

  const CommandLine& line_;
  const FileFormat format_;
  const std::string path_;
  const std::string state_path_;
  const SteadyClock::time_point begun_ = SteadyClock::now();
  ImportState state_;
  bool saved_ = false;
  std::string state_error_;    // why no state can be kept
  uint64_t end_ = UINT64_MAX;  // what begins here or later is left out
  OpenedReader opened_;
  std::unique_ptr<Pipeline> pipeline_;
  std::deque<Place> places_;  // of the requests under way
  uint64_t imported_ = 0;
  uint64_t commands_ = 0;
  uint64_t errors_ = 0;
  std::string first_error_;
};

}  // namespace

int RunImport(const CommandLine& line) {
  const absl::StatusOr<FileFormat> format = ChooseFormat(line.format, line.words[1]);
  if (!format.ok()) return Fail(format.status());
  const absl::Status status =
      line.atomic ? ImportAtomically(line, *format) : Importer(line, *format).Run();
  return status.ok() ? kDone : Fail(status);
}

}  // namespace varve
