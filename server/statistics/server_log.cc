#include "server/statistics/server_log.h"

#include <memory>
#include <mutex>
#include <string>
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
    if (config.log_file.empty()) {
      spdlog::set_default_logger(spdlog::stderr_color_mt("varve"));
    } else {
      FileSink() = std::make_shared<ReopenedFileSink>(config.log_file);
      spdlog::set_default_logger(std::make_shared<spdlog::logger>("varve", FileSink()));
    }
  } catch (const spdlog::spdlog_ex& failed) {
    return CannotOpen(failed);
  }
  spdlog::set_level(static_cast<spdlog::level::level_enum>(config.log_level));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
  spdlog::flush_on(spdlog::level::info);
  return absl::OkStatus();
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
