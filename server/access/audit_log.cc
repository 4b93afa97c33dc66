#include "server/access/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>
#include <system_error>

#include "fmt/chrono.h"
#include "fmt/format.h"
#include "spdlog/details/file_helper.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/json_text.h"

namespace varve {
namespace {

std::string Now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const int64_t millis = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(millis / 1000)), millis % 1000);
}

void AppendField(std::string_view name, std::string_view value, std::string* line) {
  if (value.empty()) return;
  *line += fmt::format(",\"{}\":", name);
  AppendJsonText(value, line);
}

std::string LineOf(const AuditLog::Entry& entry) {
  std::string line = fmt::format("{{\"time\":\"{}\"", Now());
  AppendField("event", entry.event, &line);
  AppendField("reason", entry.reason, &line);
  AppendField("command", entry.command, &line);
  AppendField("object", entry.object, &line);
  AppendField("context", entry.context, &line);
  AppendField("user", entry.user, &line);
  AppendField("client", entry.client, &line);
  return line + fmt::format(",\"id\":{}}}\n", entry.client_id);
}

}  // namespace

class AuditLog::File : public spdlog::details::file_helper {
 public:
  // Throws spdlog_ex. A new file is the server's alone: its lines name users, keys and addresses.
  void OpenPrivate(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);  // what is wrong, open() says
    open(path);
  }
};

AuditLog::AuditLog(std::string path) : path_(std::move(path)) {}
AuditLog::~AuditLog() = default;

absl::Status AuditLog::Open(Executor executor) {
  if (!on()) return absl::OkStatus();
  VARVE_ASSERT(file_ == nullptr);
  executor_ = std::move(executor);
  try {
    auto file = std::make_unique<File>();
    file->OpenPrivate(path_);
    file_ = std::move(file);
  } catch (const spdlog::spdlog_ex& failed) {
    return absl::InvalidArgumentError(fmt::format("acl-log-file: {}", failed.what()));
  }
  return absl::OkStatus();
}

void AuditLog::Add(const Entry& entry) {
  if (!on()) return;
  const std::string line = LineOf(entry);
  {
    absl::MutexLock lock(&mutex_);
    if (waiting_.size() + line.size() > kMaxWaiting) {
      ++lost_;
    } else {
      if (lost_ > 0) {
        waiting_ += fmt::format("{{\"time\":\"{}\",\"event\":\"lost\",\"lines\":{}}}\n", Now(),
                                std::exchange(lost_, 0));
      }
      waiting_ += line;
    }
  }
  Schedule();
}

void AuditLog::Reopen() {
  if (!on()) return;
  {
    absl::MutexLock lock(&mutex_);
    reopen_ = true;
  }
  Schedule();
}

void AuditLog::Schedule() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(writing_, true)) return;
  }
  if (executor_ != nullptr && executor_([this] { WriteWaiting(); })) return;
  absl::MutexLock lock(&mutex_);
  writing_ = false;  // with the next line, or at the end
}

void AuditLog::WriteWaiting() {
  for (;;) {
    std::string lines;
    bool reopen = false;
    {
      absl::MutexLock lock(&mutex_);
      lines.swap(waiting_);
      reopen = std::exchange(reopen_, false);
      if (lines.empty() && !reopen) {
        writing_ = false;
        return;
      }
    }
    Append(lines, reopen);
  }
}

void AuditLog::Append(std::string_view lines, bool reopen) {
  try {
    if (reopen) {
      auto file = std::make_unique<File>();
      file->OpenPrivate(path_);
      file_ = std::move(file);
      told_of_error_ = false;
    }
    if (lines.empty()) return;
    spdlog::memory_buf_t buffer;
    buffer.append(lines.data(), lines.data() + lines.size());
    file_->write(buffer);
    file_->flush();
    told_of_error_ = false;
  } catch (const std::exception& failed) {
    if (!std::exchange(told_of_error_, true))
      spdlog::error("acl-log-file: lines are lost: {}", failed.what());
  }
}

void AuditLog::Stop() {
  if (file_ == nullptr) return;
  executor_ = nullptr;
  WriteWaiting();
}

}  // namespace varve
