// The table of every setting of the server: its name, what it takes, its default, where it is kept,
// and how a change takes effect while the server runs. The command line, the configuration file,
// CONFIG GET/SET/REWRITE, --help, the example file and the test of the manual all come from this
// table; a new setting is one row of it.
//
// Thread-safety: The table is constant, and a ServerConfig is a plain value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "type/server_options.h"
#include "varve/options.h"

namespace varve {

class LiveSettings;

// The store says where the keys are kept; its number is the index of the setting's words.
enum class StoreKind : uint8_t { kEmbedded, kHbase };
// The security says how the server shows the cluster who it is; its number is such an index, too.
enum class HbaseSecurity : uint8_t { kSimple, kKerberos };

// The cluster that holds the keys of a server with store = hbase.
struct HbaseSettings {
  std::string quorum;   // of ZooKeeper: host:port,...
  std::string masters;  // of HBase, asked instead of a quorum: host:port,...
  std::string znode_parent = "/hbase";
  std::string table = "varve";
  bool create = true;  // whether tables that are missing are made
  HbaseSecurity security = HbaseSecurity::kSimple;
  size_t max_value_size = 1u << 20;  // bytes
};

// The values of all settings. A fresh one has the defaults.
struct ServerConfig {
  std::string directory = "data";
  int log_level = 2;          // index of the setting's words, which is spdlog's number
  std::string log_file;       // empty: standard error
  std::string password_file;  // holds server.password
  // The limit on the memory of what follows. 0: the memory at hand decides
  // (server/config/memory_plan.h).
  uint64_t memory_limit = 0;
  uint64_t max_disk_bytes = 0;  // that the data directory may take; 0: any
  StoreKind store = StoreKind::kEmbedded;
  HbaseSettings hbase;
  std::chrono::milliseconds store_deadline{30'000};  // of a call of a store on other machines
  EngineOptions engine;
  ServerOptions server;
  // Names of settings that AssignSetting gave a value, the default perhaps.
  std::set<std::string_view> given;
};

// Returns how many I/O loops the server runs: as many as are set, or as suit this machine.
int IoLoopsOf(const ServerConfig& config);

enum class SettingKind : uint8_t {
  kText,
  kWord,         // one of `words`; kept as its index
  kSwitch,       // yes or no
  kInteger,      // min to max
  kSize,         // bytes: 4096, 64MiB
  kDuration,     // 200us, 10min; kept as nanoseconds
  kSeconds,      // 3600, 1h; kept and shown as a number of seconds
  kMode,         // permissions of a file, octal
  kEvents,       // letters: Kg$
  kCompression,  // none, lz4, zstd, zstd:7; kept as CompressionNumber()
  kLimits,       // of output: normal 0 0 0 pubsub 32MiB 8MiB 60
};

struct Setting {
  std::string_view name;
  SettingKind kind;
  std::string_view help;
  // Access to where it is kept: `text` for kText, `get` and `set` for every other kind but kLimits.
  std::string& (*text)(ServerConfig& config) = nullptr;
  int64_t (*get)(const ServerConfig& config) = nullptr;
  void (*set)(ServerConfig& config, int64_t value) = nullptr;
  int64_t min = 0;
  int64_t max = 0;
  absl::Span<const std::string_view> words;

  // For kText: returns what the setting takes instead of this text, or an empty string if the text
  // is fine. Null: it takes any text.
  std::string (*refuses)(const std::string& text) = nullptr;
  // Makes the config's value the one in force. Null: it can't change while the server runs.
  absl::Status (*apply)(LiveSettings& live, const ServerConfig& config) = nullptr;
  // A second name, that Redis' clients ask for; for CONFIG only.
  std::string_view redis_name;
  // Not taken from the command line, where other users of the machine can read it.
  bool secret = false;
  // A size that the server chooses where none is given (server/config/memory_plan.h).
  bool shares_memory = false;

  constexpr Setting Live(absl::Status (*how)(LiveSettings&, const ServerConfig&)) const {
    Setting setting = *this;
    setting.apply = how;
    return setting;
  }
  constexpr Setting Checked(std::string (*how)(const std::string&)) const {
    Setting setting = *this;
    setting.refuses = how;
    return setting;
  }
  constexpr Setting CalledByRedis(std::string_view other_name) const {
    Setting setting = *this;
    setting.redis_name = other_name;
    return setting;
  }
  constexpr Setting Secret() const {
    Setting setting = *this;
    setting.secret = true;
    return setting;
  }
  constexpr Setting SharesMemory() const {
    Setting setting = *this;
    setting.shares_memory = true;
    return setting;
  }
};

// All settings, in the order in which they are best read.
absl::Span<const Setting> AllSettings();
// Null when there is none of that name. Only the setting's own name counts.
const Setting* FindSetting(std::string_view name);
// ", did you mean NAME?", or empty when no name comes near. `dashes` go before the name.
std::string SettingSuggestion(std::string_view name, std::string_view dashes = "");

// Reads `text` into the setting's place in `*config`. InvalidArgument: what it takes instead, e.g.
// "takes 1 to 1000000".
[[nodiscard]] absl::Status AssignSetting(const Setting& setting, std::string_view text,
                                         ServerConfig* config);

// The value as CONFIG GET shows it: sizes in bytes.
std::string ShowSetting(const Setting& setting, const ServerConfig& config);
// The value as people write it: 64MiB.
std::string WriteSetting(const Setting& setting, const ServerConfig& config);

// Checks what no row can tell alone. InvalidArgument names the settings that do not go together.
[[nodiscard]] absl::Status CheckTogether(const ServerConfig& config);
// The part of it that is about bounds of the data, which may be set while the server runs.
[[nodiscard]] absl::Status CheckDataLimits(const ServerConfig& config);
// Reads the password from the file that holds it, if one is set; after CheckTogether.
// InvalidArgument: it can't be read, or holds none.
[[nodiscard]] absl::Status LoadPassword(ServerConfig* config);

// Names that Redis has, whose value is always the same here.
absl::Span<const std::pair<std::string_view, std::string_view>> FixedSettings();

}  // namespace varve
