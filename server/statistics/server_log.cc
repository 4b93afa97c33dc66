#include "server/statistics/server_log.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "spdlog/details/file_helper.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

using LogFile = spdlog::details::file_helper;

class ReopenedFileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ReopenedFileSink(std::string path) : path_(std::move(path)), file_(Open()) {}

  // Throws, and goes on with the old file, when the new one can't be opened.
  void Reopen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    file_ = Open();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    file_->write(text);
  }
  void flush_() override { file_->flush(); }

 private:
  std::unique_ptr<LogFile> Open() const {
    auto file = std::make_unique<LogFile>();
    file->open(path_);
    return file;
  }

  const std::string path_;
  std::unique_ptr<LogFile> file_;
};

// Keeps the newest lines in memory.
class RecentLinesSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> Newest(size_t most) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {lines_.end() - static_cast<std::ptrdiff_t>(std::min(most, lines_.size())),
            lines_.end()};
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string_view line(text.data(), text.size());
    while (line.ends_with('\n')) line.remove_suffix(1);
    lines_.emplace_back(line.substr(0, kMostRecentBytes));
    bytes_ += lines_.back().size();
    while (lines_.size() > kMostRecentLines || bytes_ > kMostRecentBytes) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
  }
  void flush_() override {}

 private:
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
};

// Null: the log was not started.
std::shared_ptr<RecentLinesSink>& RecentLines() {
  static std::shared_ptr<RecentLinesSink> sink;
  return sink;
}

// The sink of --logfile; null: standard error.
std::shared_ptr<ReopenedFileSink>& FileSink() {
  static std::shared_ptr<ReopenedFileSink> sink;
  return sink;
}

absl::Status CannotOpen(const spdlog::spdlog_ex& failed) {
  return absl::InvalidArgumentError(fmt::format("logfile: {}", failed.what()));
}

}  // namespace

absl::Status StartServerLog(const ServerConfig& config) {
  try {
    RecentLines() = std::make_shared<RecentLinesSink>();
    spdlog::sink_ptr sink;
    if (config.log_file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    } else {
      sink = FileSink() = std::make_shared<ReopenedFileSink>(config.log_file);
    }
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "varve", spdlog::sinks_init_list{std::move(sink), RecentLines()}));
  } catch (const spdlog::spdlog_ex& failed) {
    return CannotOpen(failed);
  }
  spdlog::set_level(static_cast<spdlog::level::level_enum>(config.log_level));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
  spdlog::flush_on(spdlog::level::info);
  return absl::OkStatus();
}

std::vector<std::string> RecentLogLines(size_t most) {
  if (RecentLines() == nullptr) return {};
  return RecentLines()->Newest(most);
}

absl::Status ReopenServerLog() {
  if (FileSink() == nullptr) return absl::OkStatus();
  try {
    FileSink()->Reopen();
  } catch (const spdlog::spdlog_ex& failed) {
    return CannotOpen(failed);
  }
  return absl::OkStatus();
}

}  // namespace varve
