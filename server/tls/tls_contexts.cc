#include "server/tls/tls_contexts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

// The keys of session tickets are a context's own, so a new context replaces them.
constexpr std::chrono::hours kTicketTime{12};
// The days before a certificate's end at which the log tells of it; they ascend. Behind the end, it
// is -1.
constexpr int64_t kWarnings[] = {-1, 0, 2, 14};

}  // namespace

std::shared_ptr<const TlsContext> TlsContexts::Get() const {
  absl::MutexLock lock(&mutex_);
  return context_;
}

void TlsContexts::Install(const TlsOptions& options, TlsFiles files,
                          std::shared_ptr<const TlsContext> context) {
  VARVE_ASSERT(context != nullptr || !options.in_use());
  const bool has_context = context != nullptr;
  {
    absl::MutexLock lock(&mutex_);
    context_ = std::move(context);
  }
  options_ = options;
  files_ = std::move(files);
  made_at_ = std::chrono::steady_clock::now();
  last_error_.clear();
  const auto wanted = options.client_certificates;
  mode_.store(options.mode, std::memory_order_relaxed);
  verifies_.store(has_context && wanted != TlsClientCertificates::kNo, std::memory_order_relaxed);
  reload_seconds_.store(options.reload_seconds, std::memory_order_relaxed);
}

absl::Status TlsContexts::Use(const TlsOptions& options) {
  absl::MutexLock lock(&files_mutex_);
  return Load(options);
}

absl::Status TlsContexts::Reload() {
  absl::MutexLock lock(&files_mutex_);
  return Load(TlsOptions(options_));
}

absl::Status TlsContexts::Load(const TlsOptions& options) {
  if (!options.in_use()) {
    Install(options, {}, nullptr);
    return absl::OkStatus();
  }
  VARVE_ASSIGN_OR_RETURN(TlsFiles files, ReadTlsFiles(options));
  VARVE_ASSIGN_OR_RETURN(auto context, TlsContext::Make(options, files));
  Install(options, std::move(files), std::move(context));
  return absl::OkStatus();
}

void TlsContexts::LookAtFiles(std::chrono::system_clock::time_point now) {
  if (looking_.exchange(true)) return;
  const absl::Cleanup looked = [this] { looking_.store(false); };
  absl::MutexLock lock(&files_mutex_);
  if (!options_.in_use()) return;
  TellOfExpiry(*Get(), now);
  const auto failed = [&](const absl::Status& status) {
    files_mutex_.AssertHeld();
    std::string error(status.message());
    if (error != last_error_) spdlog::error("The old certificate and key stay in use: {}", error);
    last_error_ = std::move(error);
  };
  const bool is_old = std::chrono::steady_clock::now() - made_at_ > kTicketTime;
  const bool watches = options_.reload_seconds > 0;
  if (!watches && !is_old) return;
  absl::StatusOr<TlsFiles> files = files_;
  if (watches) files = ReadTlsFiles(options_);
  if (!files.ok()) return failed(files.status());
  if (*files == files_ && !is_old) return last_error_.clear();  // the next error is told of anew
  absl::StatusOr<std::shared_ptr<const TlsContext>> context = TlsContext::Make(options_, *files);
  if (!context.ok()) {
    files_ = *std::move(files);  // another look at the same files would not help
    return failed(context.status());
  }
  if (*files != files_)
    spdlog::info("The certificate with the serial number {} is in use from now on",
                 (*context)->serial());
  const TlsOptions options = options_;
  Install(options, *std::move(files), *std::move(context));
}

void TlsContexts::NoteSuccess() {
  statistics_.handshakes.fetch_add(1, std::memory_order_relaxed);
  statistics_.connections.fetch_add(1, std::memory_order_relaxed);
}

void TlsContexts::NoteFailure(std::string_view peer, std::string_view why) {
  statistics_.failures.fetch_add(1, std::memory_order_relaxed);
  const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::steady_clock::now().time_since_epoch())
                             .count();
  if (told_second_.exchange(second, std::memory_order_relaxed) == second) return;
  spdlog::info("The TLS handshake with {} failed: {}", peer, why);
}

void TlsContexts::TellOfExpiry(const TlsContext& context,
                               std::chrono::system_clock::time_point now) {
  const auto left = std::chrono::seconds(context.expires_at()) - now.time_since_epoch();
  const int64_t days = std::chrono::floor<std::chrono::hours>(left).count() / 24;
  const auto passed = std::find_if(std::begin(kWarnings), std::end(kWarnings),
                                   [days](int64_t warning) { return days <= warning; });
  if (passed == std::end(kWarnings) || (told_serial_ == context.serial() && told_days_ <= *passed))
    return;
  told_days_ = *passed;
  told_serial_ = context.serial();
  if (left.count() <= 0) {
    spdlog::error("The certificate with the serial number {} has expired", context.serial());
  } else {
    spdlog::warn("The certificate with the serial number {} expires in {} hours", context.serial(),
                 std::chrono::floor<std::chrono::hours>(left).count());
  }
}

}  // namespace varve
