#include "server/access/acl_file.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kMostErrors = 10;  // lines whose errors are told

std::string_view Text(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return line;
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

// Reads one line to a user whose name is not in `names`.
absl::StatusOr<User> ParseLine(const RuleContext& context, std::string_view line,
                               std::set<std::string>* names) {
  const std::vector<std::string_view> words = SplitWords(line);
  if (words.size() < 2 || words[0] != "user") {
    return absl::InvalidArgumentError("should start with user keyword followed by the username");
  }
  if (!IsUserName(words[1])) {
    return absl::InvalidArgumentError("Usernames can't contain spaces or null characters");
  }
  if (!names->insert(std::string(words[1])).second) {
    return absl::InvalidArgumentError(fmt::format("Duplicate user '{}' found", words[1]));
  }
  User user = NewUser(context, words[1]);
  VARVE_RETURN_IF_ERROR(
      ApplyUserRules(context, absl::MakeSpan(words).subspan(2), &user, "applying operation"));
  VARVE_ASSERT(user.name == words[1]);
  return user;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found)
    return absl::NotFoundError(fmt::format("{}: there is no such file", path));
  if (type != std::filesystem::file_type::regular)
    return absl::InvalidArgumentError(fmt::format("{}: it is no file", path));
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, PosixFileSystem()->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > kMaxAclFile) {
    return absl::InvalidArgumentError(
        fmt::format("{}: it has more than {} bytes", path, kMaxAclFile));
  }
  std::string text(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, size, text.data()));
  text.resize(read);
  return text;
}

}  // namespace

absl::StatusOr<std::vector<User>> ParseAclText(const RuleContext& context, const std::string& path,
                                               std::string_view text) {
  std::vector<User> users;
  std::set<std::string> names;
  std::string errors;
  size_t wrong = 0;
  for (size_t number = 1; !text.empty() && wrong < kMostErrors; ++number) {
    const std::string_view line = TakeLine(&text);
    if (line.empty()) continue;
    absl::StatusOr<User> user = ParseLine(context, line, &names);
    if (user.ok()) {
      users.push_back(*std::move(user));
    } else {
      ++wrong;
      std::string_view why = Text(user.status());
      if (why.ends_with('.')) why.remove_suffix(1);
      errors += fmt::format("{}:{}: {}. ", path, number, why);
    }
  }
  if (wrong == 0) return users;
  VARVE_ASSERT(!errors.empty());
  errors.pop_back();
  return absl::InvalidArgumentError(errors);
}

absl::StatusOr<std::vector<User>> ReadAclFile(const RuleContext& context, const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseAclText(context, path, text);
}

absl::Status WriteAclFile(FileSystem* files, const std::string& path,
                          absl::Span<const UserPointer> users) {
  std::string text;
  for (const UserPointer& user : users) text += DescribeUser(*user) + "\n";
  VARVE_ASSERT(!text.empty());
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);  // a link stays one
  const bool is_new = static_cast<bool>(error);
  if (is_new) real = path;
  const std::string temporary = real.string() + ".tmp";
  const std::filesystem::perms mode = std::filesystem::status(real, error).permissions();
  const auto write = [&]() -> absl::Status {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->OpenForWrite(temporary, true));
    VARVE_RETURN_IF_ERROR(file->Write(0, text));
    if (!is_new) std::filesystem::permissions(temporary, mode, error);
    if (!is_new && error)
      return absl::InternalError(
          fmt::format("can't give {} the mode of {}: {}", temporary, path, error.message()));
    VARVE_RETURN_IF_ERROR(file->Sync());
    return files->Rename(temporary, real.string());
  };
  if (absl::Status written = write(); !written.ok()) {
    std::filesystem::remove(temporary, error);
    return written;
  }
  return files->SyncDirectory(ParentDirectory(real.string()));
}

absl::Status AclFile::Load(UserTable* users) {
  VARVE_ASSERT(named());
  absl::MutexLock lock(&mutex_);
  VARVE_ASSIGN_OR_RETURN(std::vector<User> read, ReadAclFile(users->rule_context(), path_));
  users->Replace(std::move(read));
  VARVE_ASSERT(users->Default() != nullptr);
  return absl::OkStatus();
}

absl::Status AclFile::Save(const UserTable& users) {
  VARVE_ASSERT(named());
  absl::MutexLock lock(&mutex_);
  return WriteAclFile(PosixFileSystem(), path_, users.All());
}

}  // namespace varve
