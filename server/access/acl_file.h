// The file of users: one line of ACL LIST for each, "user alice on ~app:* +get". Empty lines are
// skipped. It is read and written as a whole: a file with one wrong line changes nothing, and a
// write leaves the old file or the new one, whatever happens.
//
// Thread-safety: all functions may be called on any thread; AclFile has one at a time use its file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/access/acl_rules.h"
#include "server/access/user.h"
#include "server/access/user_table.h"
#include "util/os/file_system.h"

namespace varve {

inline constexpr size_t kMaxAclFile = 64u << 20;  // bytes

// InvalidArgument names the file, the line and what is wrong, for every wrong line up to some.
// NotFound: there is no such file.
absl::StatusOr<std::vector<User>> ReadAclFile(const RuleContext& context, const std::string& path);
// Reads the text of such a file likewise.
absl::StatusOr<std::vector<User>> ParseAclText(const RuleContext& context, const std::string& path,
                                               std::string_view text);

// Writes the users to the file, whose mode stays.
absl::Status WriteAclFile(FileSystem* files, const std::string& path,
                          absl::Span<const UserPointer> users);

// The file that the setting aclfile names. One thread at a time reads or writes it.
class AclFile {
 public:
  explicit AclFile(std::string path) : path_(std::move(path)) {}

  bool named() const { return !path_.empty(); }
  // Replaces the users by those of the file. An error: the table stays as it is.
  absl::Status Load(UserTable* users) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Save(const UserTable& users) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string path_;
  absl::Mutex mutex_;
};

}  // namespace varve
