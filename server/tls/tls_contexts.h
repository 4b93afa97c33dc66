// The TLS contexts of a server are the one that connections begin with now, and the files that the
// next is made of. A pair of files that does not fit changes nothing: the context in use stays.
//
// Thread-safety: all threads may use an object at once. Use(), Reload() and LookAtFiles() read
// files and are not for I/O threads; no other function waits for them.
// Invariants: while TLS is in use there is a context.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/tls/tls_context.h"
#include "type/tls_options.h"

namespace varve {

// Counts of connections over TLS.
struct TlsStatistics {
  std::atomic<uint64_t> connections{0};  // whose handshake is done, now
  std::atomic<uint64_t> handshakes{0};   // that were completed
  std::atomic<uint64_t> failures{0};     // handshakes that were not
};

class TlsContexts {
 public:
  TlsContexts() = default;
  TlsContexts(const TlsContexts&) = delete;
  TlsContexts& operator=(const TlsContexts&) = delete;

  // Uses these settings from now on, with what their files hold. InvalidArgument: nothing changed;
  // the message names the setting and the reason.
  [[nodiscard]] absl::Status Use(const TlsOptions& options) ABSL_LOCKS_EXCLUDED(files_mutex_);
  // Reads the files again. InvalidArgument: the old context stays.
  [[nodiscard]] absl::Status Reload() ABSL_LOCKS_EXCLUDED(files_mutex_);
  // Does the same if a file has changed and the settings want to know, or if the context is so old
  // that its session tickets should be replaced, and logs what came of it. Tells in time that the
  // certificate expires. Does nothing while another thread does it: files that hang hold up one
  // thread.
  void LookAtFiles(std::chrono::system_clock::time_point now) ABSL_LOCKS_EXCLUDED(files_mutex_);

  // Returns null while there is no certificate.
  std::shared_ptr<const TlsContext> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what the ordinary port speaks now.
  TlsMode mode() const { return mode_.load(std::memory_order_relaxed); }
  // Returns whether a client may show a certificate.
  bool verifies() const { return verifies_.load(std::memory_order_relaxed); }
  std::chrono::seconds reload_interval() const {
    return std::chrono::seconds(reload_seconds_.load(std::memory_order_relaxed));
  }

  // Counts a handshake that was completed, and its connection.
  void NoteSuccess();
  // Counts a handshake that was not, and tells in the log why, at most once a second.
  void NoteFailure(std::string_view peer, std::string_view why);
  TlsStatistics& statistics() { return statistics_; }
  const TlsStatistics& statistics() const { return statistics_; }

 private:
  // Reads the files that the settings name, and uses both from now on. The error changes nothing.
  absl::Status Load(const TlsOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(files_mutex_)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Install(const TlsOptions& options, TlsFiles files, std::shared_ptr<const TlsContext> context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(files_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Logs, once for each of a few days before it, that the certificate expires.
  void TellOfExpiry(const TlsContext& context, std::chrono::system_clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(files_mutex_);

  std::atomic<TlsMode> mode_{TlsMode::kOff};
  std::atomic<bool> verifies_{false};
  std::atomic<int64_t> reload_seconds_{0};
  TlsStatistics statistics_;
  std::atomic<int64_t> told_second_{0};  // of the steady clock, in which a failure was logged last
  std::atomic<bool> looking_{false};     // a thread is in LookAtFiles()

  absl::Mutex files_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  TlsOptions options_ ABSL_GUARDED_BY(files_mutex_);
  // The files that the context was made of, or those that were read since and do not fit.
  TlsFiles files_ ABSL_GUARDED_BY(files_mutex_);
  std::chrono::steady_clock::time_point made_at_ ABSL_GUARDED_BY(files_mutex_);
  std::string last_error_ ABSL_GUARDED_BY(files_mutex_);
  // The certificate whose end was told of last, and how many days before it.
  std::string told_serial_ ABSL_GUARDED_BY(files_mutex_);
  int64_t told_days_ ABSL_GUARDED_BY(files_mutex_) = 0;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const TlsContext> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
