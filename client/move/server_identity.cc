#include "client/move/server_identity.h"

#include <string_view>

#include "util/base/status.h"

namespace varve {

absl::StatusOr<std::string> ServerIdentity(Client* client) {
  constexpr std::string_view kField = "run_id:";
  VARVE_ASSIGN_OR_RETURN(const Reply info, client->Call({"INFO", "server"}));
  const size_t at = info.text.find(kField);
  if (at == std::string::npos) return std::string();
  const size_t begin = at + kField.size();
  return info.text.substr(begin, info.text.find_first_of("\r\n", begin) - begin);
}

}  // namespace varve
