#include "server/clients/monitors.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "server/clients/client_memory.h"
#include "server/requests/command.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Of one argument that are shown; then how many are missing.
constexpr size_t kMaxArgumentBytes = 4096;
constexpr size_t kMaxLineBytes = 64u << 10;  // after which no further argument is shown

void AppendQuoted(std::string_view argument, std::string* out) {
  const std::string_view text = argument.substr(0, kMaxArgumentBytes);
  constexpr std::string_view kEscaped = "\n\r\t\a\b\\\"";
  constexpr std::string_view kLetters = "nrtab\\\"";
  *out += " \"";
  for (const char c : text) {
    if (const size_t at = kEscaped.find(c); at != std::string_view::npos) {
      *out += '\\';
      *out += kLetters[at];
    } else if (c >= ' ' && c <= '~') {
      *out += c;
    } else {
      fmt::format_to(std::back_inserter(*out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  *out += '"';
  if (text.size() < argument.size()) {
    fmt::format_to(std::back_inserter(*out), "... ({} more bytes)", argument.size() - text.size());
  }
}

}  // namespace

void Monitors::Add(Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(mailbox != nullptr);
  if (mailboxes_.insert(mailbox).second) count_.fetch_add(1);
  VARVE_ASSERT(count_.load() == mailboxes_.size());
}

void Monitors::Remove(Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  if (mailboxes_.erase(mailbox) > 0) count_.fetch_sub(1);
  VARVE_ASSERT(count_.load() == mailboxes_.size());
}

void Monitors::Show(NamespaceId space, std::string_view address, const Command& command,
                    Arguments arguments) {
  // What administrators do is not shown, as in Redis: it may hold secrets.
  if (command.flags & kAdminCommand) return;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  std::string line = fmt::format("+{}.{:06} [{} {}]", now / 1000000, now % 1000000, space, address);
  const bool secret = (command.flags & kSecretArguments) != 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (line.size() > kMaxLineBytes) {
      fmt::format_to(std::back_inserter(line), " ... ({} more arguments)", arguments.size() - i);
      break;
    }
    AppendQuoted(secret && i > 0 ? "(redacted)" : arguments[i], &line);
  }
  line += "\r\n";
  const auto message = memory_->Count(std::move(line));
  absl::ReaderMutexLock lock(&mutex_);
  for (Mailbox* mailbox : mailboxes_) mailbox->Deliver(message, kNoSequence);
}

}  // namespace varve
