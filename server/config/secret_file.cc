#include "server/config/secret_file.h"

#include <fstream>

#include "fmt/format.h"

namespace varve {

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  std::ifstream file(path);
  std::string secret;
  std::getline(file, secret);
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} {}", path, file.is_open() ? "holds no password in its first line" : "can't be read"));
  }
  if (secret.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(fmt::format("{} has a zero byte", path));
  return secret;
}

}  // namespace varve
