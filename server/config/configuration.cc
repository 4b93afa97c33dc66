#include "server/config/configuration.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "server/config/config_file.h"
#include "server/config/live_settings.h"
#include "util/base/assert.h"
#include "util/base/glob.h"
#include "util/base/letter_case.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status Refused(std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("'{}') - {}", name, why));
}

}  // namespace

void Configuration::NotePort(uint16_t port) {
  absl::MutexLock lock(&mutex_);
  in_force_.server.port = port;
}

void Configuration::NoteTlsPort(uint16_t port) {
  absl::MutexLock lock(&mutex_);
  in_force_.server.tls.port = port;
}

void Configuration::NoteHttpPort(uint16_t port) {
  absl::MutexLock lock(&mutex_);
  in_force_.server.http_port = port;
}

void Configuration::NotePrimary(const std::string& primary) {
  absl::MutexLock lock(&mutex_);
  if (in_force_.server.replication.primary == primary) return;
  in_force_.server.replication.primary = primary;
  given_.server.replication.primary = primary;
  given_.given.insert("replicaof");
}

ServerConfig Configuration::given() const {
  absl::MutexLock lock(&mutex_);
  return given_;
}

ServerConfig Configuration::in_force() const {
  absl::MutexLock lock(&mutex_);
  return in_force_;
}

ReplicationOptions Configuration::replication() const {
  absl::MutexLock lock(&mutex_);
  return in_force_.server.replication;
}

std::vector<std::pair<std::string, std::string>> Configuration::Get(
    absl::Span<const std::string_view> patterns) const {
  std::map<std::string, std::string> shown;
  const auto show = [&](std::string_view name, std::string value) {
    const auto matches = [&](std::string_view pattern) {
      return GlobMatches(pattern, name, GlobCase::kInsensitive);
    };
    if (std::any_of(patterns.begin(), patterns.end(), matches))
      shown[std::string(name)] = std::move(value);
  };
  for (const auto& [name, value] : FixedSettings()) show(name, std::string(value));
  absl::MutexLock lock(&mutex_);
  const ServerConfig& config = in_force_;
  for (const Setting& setting : AllSettings()) {
    show(setting.name, ShowSetting(setting, config));
    if (!setting.redis_name.empty()) show(setting.redis_name, ShowSetting(setting, config));
  }
  return {shown.begin(), shown.end()};
}

std::string Configuration::Get(std::string_view name) const {
  const auto found = Get(absl::Span<const std::string_view>(&name, 1));
  return found.empty() ? std::string() : found[0].second;
}

absl::Status Configuration::Set(LiveSettings& live, absl::Span<const std::string_view> pairs) {
  VARVE_ASSERT(pairs.size() % 2 == 0);
  absl::MutexLock lock(&mutex_);
  ServerConfig wanted = in_force_, given = given_;
  std::vector<const Setting*> changed;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string name = LowerCase(pairs[i]);
    const auto& fixed = FixedSettings();
    if (const auto at = std::find_if(fixed.begin(), fixed.end(),
                                     [&](const auto& row) { return row.first == name; });
        at != fixed.end()) {
      if (at->second == pairs[i + 1]) continue;
      return Refused(name, fmt::format("it is always '{}'", at->second));
    }
    const auto& all = AllSettings();
    const auto setting = std::find_if(all.begin(), all.end(), [&](const Setting& row) {
      return row.name == name || (!row.redis_name.empty() && row.redis_name == name);
    });
    if (setting == all.end()) return absl::NotFoundError(std::string(pairs[i]));
    if (setting->apply == nullptr) return Refused(name, "can't set immutable config");
    if (std::find(changed.begin(), changed.end(), &*setting) != changed.end()) {
      return Refused(name, "duplicate parameter");
    }
    if (const absl::Status status = AssignSetting(*setting, pairs[i + 1], &wanted); !status.ok()) {
      return Refused(name, std::string(status.message()));
    }
    AssignSetting(*setting, pairs[i + 1], &given).IgnoreError();  // it just went well
    changed.push_back(&*setting);
  }
  for (size_t i = 0; i < changed.size(); ++i) {
    const absl::Status applied = changed[i]->apply(live, wanted);
    if (applied.ok()) continue;
    for (size_t undo = 0; undo < i; ++undo) {
      if (changed[undo]->apply(live, in_force_).ok()) continue;
      // It stays, as where a bound was raised and somebody has used the room.
      const std::string stays = WriteSetting(*changed[undo], wanted);
      AssignSetting(*changed[undo], stays, &in_force_).IgnoreError();
      AssignSetting(*changed[undo], stays, &given_).IgnoreError();
    }
    return Refused(changed[i]->name, std::string(applied.message()));
  }
  in_force_ = std::move(wanted);
  given_ = std::move(given);
  return absl::OkStatus();
}

absl::Status Configuration::ReloadPassword(LiveSettings& live) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(LoadPassword(&in_force_));
  if (!in_force_.password_file.empty()) live.SetPassword(in_force_.server.password);
  given_.server.password = in_force_.server.password;
  return absl::OkStatus();
}

absl::Status Configuration::Rewrite() const {
  if (file_.empty())
    return absl::FailedPreconditionError("The server is running without a config file");
  absl::MutexLock lock(&mutex_);
  return RewriteConfigFile(file_, given_);
}

}  // namespace varve
