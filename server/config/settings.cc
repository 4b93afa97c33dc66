#include "server/config/settings.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <sstream>
#include <thread>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "server/config/eviction_policy.h"
#include "server/config/key_event_classes.h"
#include "server/config/secret_file.h"
#include "server/config/settings_live.h"
#include "util/base/nearest_text.h"
#include "util/base/size_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

// In the rows: where the setting is kept.
#define VARVE_KEPT_IN(field) \
  [](ServerConfig & config) -> auto& { return config.field; }

template <typename Value>
int64_t AsNumber(Value value) {
  return static_cast<int64_t>(value);
}
template <typename Rep, typename Period>
int64_t AsNumber(std::chrono::duration<Rep, Period> value) {
  return value.count();
}

template <typename Field>
constexpr Setting Number(SettingKind kind, std::string_view name, int64_t min, int64_t max, Field,
                         std::string_view help) {
  Setting setting{.name = name, .kind = kind, .help = help};
  setting.get = [](const ServerConfig& config) {
    return AsNumber(Field()(const_cast<ServerConfig&>(config)));
  };
  setting.set = [](ServerConfig& config, int64_t value) {
    auto& field = Field()(config);
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
  };
  setting.min = min;
  setting.max = max;
  return setting;
}

template <typename Field>
constexpr Setting Text(std::string_view name, Field field, std::string_view help) {
  Setting setting{.name = name, .kind = SettingKind::kText, .help = help};
  setting.text = field;
  return setting;
}
template <typename Field>
constexpr Setting Word(std::string_view name, absl::Span<const std::string_view> words, Field field,
                       std::string_view help) {
  Setting setting =
      Number(SettingKind::kWord, name, 0, static_cast<int64_t>(words.size()) - 1, field, help);
  setting.words = words;
  return setting;
}
template <typename Field>
constexpr Setting Switch(std::string_view name, Field field, std::string_view help) {
  return Number(SettingKind::kSwitch, name, 0, 1, field, help);
}
template <typename Field>
constexpr Setting Integer(std::string_view name, int64_t min, int64_t max, Field field,
                          std::string_view help) {
  return Number(SettingKind::kInteger, name, min, max, field, help);
}
template <typename Field>
constexpr Setting Size(std::string_view name, int64_t min, int64_t max, Field field,
                       std::string_view help) {
  return Number(SettingKind::kSize, name, min, max, field, help);
}
template <typename Field>
constexpr Setting Duration(std::string_view name, std::chrono::nanoseconds max, Field,
                           std::string_view help) {
  Setting setting{.name = name, .kind = SettingKind::kDuration, .help = help};
  setting.get = [](const ServerConfig& config) {
    return std::chrono::nanoseconds(Field()(const_cast<ServerConfig&>(config))).count();
  };
  setting.set = [](ServerConfig& config, int64_t value) {
    auto& field = Field()(config);
    field = std::chrono::duration_cast<std::remove_reference_t<decltype(field)>>(
        std::chrono::nanoseconds(value));
  };
  setting.max = max.count();
  return setting;
}

// As Duration(), for a number of milliseconds.
template <typename Field>
constexpr Setting Milliseconds(std::string_view name, std::chrono::nanoseconds max, Field,
                               std::string_view help) {
  constexpr int64_t kNanos = 1'000'000;
  Setting setting{.name = name, .kind = SettingKind::kDuration, .help = help};
  setting.get = [](const ServerConfig& config) {
    return static_cast<int64_t>(Field()(const_cast<ServerConfig&>(config))) * kNanos;
  };
  setting.set = [](ServerConfig& config, int64_t value) {
    Field()(config) = static_cast<uint64_t>(value / kNanos);
  };
  setting.max = max.count();
  return setting;
}

// A compression as a number, and back.
int64_t CompressionNumber(const Compression& compression) {
  return static_cast<int64_t>(compression.method) | int64_t{compression.level} << 8;
}
Compression CompressionOf(int64_t number) {
  return {static_cast<CompressionMethod>(number & 0xff), static_cast<uint8_t>(number >> 8)};
}
template <typename Field>
constexpr Setting HowCompressed(std::string_view name, Field, std::string_view help) {
  Setting setting{.name = name, .kind = SettingKind::kCompression, .help = help};
  setting.get = [](const ServerConfig& config) {
    return CompressionNumber(Field()(const_cast<ServerConfig&>(config)));
  };
  setting.set = [](ServerConfig& config, int64_t value) { Field()(config) = CompressionOf(value); };
  setting.max = std::numeric_limits<int64_t>::max();
  return setting;
}

constexpr Setting Limits(std::string_view name, std::string_view help) {
  return {.name = name, .kind = SettingKind::kLimits, .help = help};
}

constexpr size_t kLongestHost = 255;
constexpr int kLastPort = 65535;

// What a text setting takes where it doesn't take any; empty: the text is fine.
std::string AddressNeeded(const std::string& text) {
  char address[sizeof(in6_addr)];
  const bool fine = text == "localhost" || inet_pton(AF_INET, text.c_str(), address) == 1 ||
                    inet_pton(AF_INET6, text.c_str(), address) == 1;
  return fine ? "" : "takes an IP address";
}
std::string DirectoryNeeded(const std::string& text) { return text.empty() ? "takes a path" : ""; }
std::string DirectoryNameNeeded(const std::string& text) {
  const bool fine = !text.empty() && text != "." && text != ".." &&
                    text.find('/') == std::string::npos && text.find('\n') == std::string::npos;
  return fine ? "" : "takes a name without slashes";
}
std::string TlsProtocolsNeeded(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word != "TLSv1.2" && word != "TLSv1.3") return "takes TLSv1.2, TLSv1.3 or both";
  }
  return "";
}
std::string PolicyNeeded(const std::string& text) {
  return ParseEvictionPolicy(text) ? "" : "takes " + EvictionPolicies();
}
// "host port", as REPLICAOF takes them.
std::string PrimaryNeeded(const std::string& text) {
  if (text.empty()) return "";
  const size_t space = text.find(' ');
  const bool fine = space != std::string::npos && space > 0 && space <= kLongestHost &&
                    text.find_first_of("\t\r\n") == std::string::npos;
  int port = 0;
  if (fine) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + space + 1, end, port);
    if (error == std::errc() && stop == end && port > 0 && port <= kLastPort) return "";
  }
  return "takes a host and a port with a space between, or nothing";
}
std::string ReadOnlyNeeded(const std::string& text) {
  if (text == "yes") return "";
  return "takes yes; the versions of a follower are those of its primary, so it takes no writes of "
         "its own";
}
std::string SocketPathNeeded(const std::string& text) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  return text.size() <= kMost ? "" : fmt::format("takes a path of at most {} bytes", kMost);
}

constexpr std::string_view kSyncWords[] = {"always", "everysec", "no"};           // Durability
constexpr std::string_view kSyncBackendWords[] = {"auto", "pwrite", "direct"};    // SyncBackend
constexpr std::string_view kAclPubSubWords[] = {"resetchannels", "allchannels"};  // bool
constexpr std::string_view kExecutionWords[] = {"adaptive", "pool", "inline"};    // Execution
constexpr std::string_view kStoreWords[] = {"embedded", "hbase"};                 // StoreKind
constexpr std::string_view kHbaseSecurityWords[] = {"simple", "kerberos"};        // HbaseSecurity
constexpr std::string_view kTlsWords[] = {"off", "optional", "required"};         // TlsMode
constexpr std::string_view kTlsClientWords[] = {"yes", "no", "optional"};  // TlsClientCertificates
constexpr std::string_view kTlsUserWords[] = {"off", "CN", "URI"};         // TlsUserName
constexpr std::string_view kLogLevels[] = {"trace", "debug",    "info", "warning",  // spdlog's
                                           "error", "critical", "off"};

constexpr int64_t kKi = 1024, kMi = kKi * kKi, kGi = kKi * kMi, kTi = kKi * kGi;
constexpr std::chrono::seconds kYear{365 * 24 * 3600};
constexpr std::chrono::minutes kLongestStoreDeadline{10};
constexpr std::chrono::milliseconds kShortestStoreDeadline{100};
constexpr int64_t kMostFollowers = 1000;
constexpr int64_t kLongestKeepalive = 32767;  // the kernel's, in seconds

constexpr Setting kSettings[] = {
    // Where it listens.
    Text("bind", VARVE_KEPT_IN(server.bind), "IP address to listen on").Checked(AddressNeeded),
    Integer(
        "port", 0, 65535, VARVE_KEPT_IN(server.port),
        "TCP port; 0: none, or, where there is neither --unixsocket nor --tls-port, any free one"),
    Text("unixsocket", VARVE_KEPT_IN(server.unix_socket),
         "path of a Unix socket to listen on as well; empty: none")
        .Checked(SocketPathNeeded),
    Number(SettingKind::kMode, "unixsocketperm", 0, 0777, VARVE_KEPT_IN(server.unix_socket_mode),
           "permissions of the Unix socket, octal"),
    Text("http-bind", VARVE_KEPT_IN(server.http_bind),
         "IP address to serve metrics, health and status on, over HTTP")
        .Checked(AddressNeeded),
    Integer("http-port", -1, 65535, VARVE_KEPT_IN(server.http_port),
            "port of metrics, health and status; 0: they are not served, -1: any free one, which "
            "the log names"),
    Text("http-hosts", VARVE_KEPT_IN(server.http_hosts),
         "names by which HTTP requests may call this server, separated by commas, besides IP "
         "addresses and localhost"),
    // TLS, which hides what is said and shows who says it.
    Word("tls", kTlsWords, VARVE_KEPT_IN(server.tls.mode),
         "what port and http-port speak: off (plain text), optional (TLS or plain text, which the "
         "first byte of a connection tells apart) or required (TLS alone)")
        .Live(ApplyTls),
    Integer("tls-port", -1, 65535, VARVE_KEPT_IN(server.tls.port),
            "a further port, for TLS alone; 0: none, -1: any free one, which the log names"),
    Text("tls-cert-file", VARVE_KEPT_IN(server.tls.certificate_file),
         "the server's certificate and those between it and its authority, in PEM form")
        .Live(ApplyTls),
    Text("tls-key-file", VARVE_KEPT_IN(server.tls.key_file),
         "the private key of that certificate, in PEM form; empty: it is in tls-cert-file")
        .Live(ApplyTls),
    Text("tls-key-file-pass", VARVE_KEPT_IN(server.tls.key_password),
         "password of the private key; empty: it has none")
        .Live(ApplyTls)
        .Secret(),
    Text("tls-ca-cert-file", VARVE_KEPT_IN(server.tls.ca_file),
         "certificates of the authorities that sign clients' certificates, in PEM form")
        .Live(ApplyTls),
    Text("tls-ca-cert-dir", VARVE_KEPT_IN(server.tls.ca_directory),
         "directory of such certificates, named by their hashes (openssl rehash)")
        .Live(ApplyTls),
    Text("tls-crl-file", VARVE_KEPT_IN(server.tls.crl_file),
         "list of clients' certificates that were taken back, in PEM form")
        .Live(ApplyTls),
    Word("tls-auth-clients", kTlsClientWords, VARVE_KEPT_IN(server.tls.client_certificates),
         "whether a client has to show a certificate: yes, no or optional (one that is shown must "
         "be good)")
        .Live(ApplyTls),
    Word("tls-auth-clients-user", kTlsUserWords, VARVE_KEPT_IN(server.tls.user_name),
         "what of a client's certificate names the user that it is logged in as: off, CN (common "
         "name) or URI (alternative name)")
        .Live(ApplyTls),
    Text("tls-protocols", VARVE_KEPT_IN(server.tls.protocols),
         "TLSv1.2, TLSv1.3, or both with a space between; empty: both")
        .Checked(TlsProtocolsNeeded)
        .Live(ApplyTls),
    Text("tls-ciphers", VARVE_KEPT_IN(server.tls.ciphers),
         "ciphers of TLS 1.2, in OpenSSL's words; empty: OpenSSL's choice")
        .Live(ApplyTls),
    Text("tls-ciphersuites", VARVE_KEPT_IN(server.tls.cipher_suites),
         "cipher suites of TLS 1.3, in OpenSSL's words; empty: OpenSSL's choice")
        .Live(ApplyTls),
    Switch("tls-prefer-server-ciphers", VARVE_KEPT_IN(server.tls.prefer_server_ciphers),
           "choose the cipher by the server's order, not the client's")
        .Live(ApplyTls),
    Text("tls-dh-params-file", VARVE_KEPT_IN(server.tls.dh_file),
         "Diffie-Hellman parameters for TLS 1.2, in PEM form; empty: OpenSSL's")
        .Live(ApplyTls),
    Switch("tls-session-caching", VARVE_KEPT_IN(server.tls.session_caching),
           "let clients take up an earlier session, which saves most of a handshake")
        .Live(ApplyTls),
    Integer("tls-session-cache-size", 0, 1'000'000, VARVE_KEPT_IN(server.tls.session_cache_size),
            "sessions of TLS 1.2 that are kept for that; 0: any number")
        .Live(ApplyTls),
    Integer("tls-session-cache-timeout", 1, kYear.count(),
            VARVE_KEPT_IN(server.tls.session_cache_seconds),
            "seconds for which a session may be taken up")
        .Live(ApplyTls),
    Integer("tls-auto-reload-interval", 0, kYear.count(), VARVE_KEPT_IN(server.tls.reload_seconds),
            "seconds between looks at the files above, which are used anew when they changed; 0: "
            "only SIGHUP has them read")
        .Live(ApplyTls),
    // Who may come in.
    Switch("protected-mode", VARVE_KEPT_IN(server.protected_mode),
           "serve only clients of this machine while no password is set")
        .Live(ApplyProtectedMode),
    Text("requirepass", VARVE_KEPT_IN(server.password),
         "password that clients must give; empty: none. Not on the command line, where other users "
         "can read it")
        .Live(ApplyPassword)
        .Secret(),
    Text("requirepass-file", VARVE_KEPT_IN(password_file),
         "file whose first line is that password; read again at SIGHUP"),
    Text("aclfile", VARVE_KEPT_IN(server.acl_file),
         "file of users and their rights, for ACL LOAD and SAVE; empty: none"),
    Word("acl-pubsub-default", kAclPubSubWords, VARVE_KEPT_IN(server.acl_all_channels),
         "channels that a new user may use: resetchannels (none) or allchannels")
        .Live(ApplyAccess),
    Integer("tracking-table-max-keys", 0, 1'000'000'000, VARVE_KEPT_IN(server.tracking_max_keys),
            "keys that CLIENT TRACKING remembers for clients, within 128 MiB; 0: as many as fit")
        .Live(ApplyTrackedKeys),
    Integer("acllog-max-len", 0, 1'000'000, VARVE_KEPT_IN(server.acl_log_entries),
            "denials kept for ACL LOG")
        .Live(ApplyAccess),
    Text("acl-log-file", VARVE_KEPT_IN(server.acl_log_file),
         "file to append a line of JSON to for each denial and each executed command of @admin, "
         "opened anew at SIGHUP; empty: none"),
    Integer("maxclients", 1, 1'000'000, VARVE_KEPT_IN(server.max_clients), "connections at a time")
        .Live(ApplyMaxClients),
    Size("maxmemory-clients", 0, 16 * kTi, VARVE_KEPT_IN(server.max_clients_memory),
         "memory for what all connections hold of requests, replies and messages; the one that "
         "holds most is closed "
         "then. 0: any")
        .Live(ApplyClientsMemory)
        .SharesMemory(),
    Size("maxmemory", 0, 16 * kTi, VARVE_KEPT_IN(server.max_memory),
         "bytes of keys and values that all databases and namespaces may hold together; then "
         "maxmemory-policy makes room, or commands that add data are refused. 0: any")
        .Live(ApplyMaxMemory),
    Text("maxmemory-policy", VARVE_KEPT_IN(server.max_memory_policy),
         "which keys of the databases go when maxmemory is reached: noeviction (none), "
         "allkeys-lru, allkeys-lfu, allkeys-random, or, of those that expire, volatile-lru, "
         "volatile-lfu, volatile-random, volatile-ttl")
        .Checked(PolicyNeeded)
        .Live(ApplyMaxMemory),
    Size(
        "max-disk-bytes", 0, 1024 * kTi, VARVE_KEPT_IN(max_disk_bytes),
        "bytes that everything in dir may take on disk together; near that, the server evicts what "
        "may be evicted, and then refuses commands that add data, as on a full disk. 0: any")
        .Live(ApplyDiskLimit),
    Limits("client-output-buffer-limit",
           "what a client may leave unread before its connection is closed, for replies (normal) "
           "and for messages of "
           "channels and MONITOR (pubsub): at most so many bytes, and more than so many for at "
           "most so many seconds; 0: "
           "any")
        .Live(ApplyOutputLimits),
    Size("unsent-max-bytes", 16 * kKi, kGi, VARVE_KEPT_IN(server.unsent_max_bytes),
         "replies that a client may leave unread before its further requests wait")
        .Live(ApplyUnsent),
    Size("proto-max-bulk-len", kMi, kMaxValueSize, VARVE_KEPT_IN(server.max_value_bytes),
         "bytes of one argument, and of a value that a command lets grow")
        .Live(ApplyValueSize),
    Integer("timeout", 0, kYear.count(), VARVE_KEPT_IN(server.idle_timeout),
            "seconds after which a silent connection is closed; 0: never")
        .Live(ApplyTimeout),
    Integer("login-timeout", 0, kYear.count(), VARVE_KEPT_IN(server.login_timeout),
            "seconds within which a client has to give the password, where one is needed; 0: as "
            "many as it likes")
        .Live(ApplyLoginTimeout),
    Integer("tcp-keepalive", 0, kLongestKeepalive, VARVE_KEPT_IN(server.tcp_keepalive),
            "seconds after which a silent peer is asked whether it is still there; 0: never")
        .Live(ApplyKeepalive),
    Duration("snapshot-max-age", kYear, VARVE_KEPT_IN(server.snapshot_max_age),
             "how long a client may take for one long reply, which keeps old versions of records; "
             "0: as long as it likes")
        .Live(ApplySnapshotMaxAge),
    Integer("databases", 1, 1024, VARVE_KEPT_IN(server.databases),
            "databases that SELECT knows, by number from 0 on"),
    Number(SettingKind::kEvents, "notify-keyspace-events", 0, UINT32_MAX,
           VARVE_KEPT_IN(server.key_events),
           "what is told of keys on channels, as letters: K (__keyspace@..), E (__keyevent@..), "
           "then g (generic), $ "
           "(strings), x (expired), A (all of these), m (a key that was missing), n (a new key); "
           "empty: nothing")
        .Live(ApplyKeyEvents),
    // What is promised of the data.
    Text("dir", VARVE_KEPT_IN(directory), "directory of the data, made if it is missing")
        .Checked(DirectoryNeeded),
    Word("store", kStoreWords, VARVE_KEPT_IN(store),
         "where the keys are: embedded (in dir) or hbase (in a cluster that other servers use, "
         "too)"),
    Text("hbase-quorum", VARVE_KEPT_IN(hbase.quorum),
         "the ZooKeeper of the HBase cluster: host:port,host:port"),
    Text("hbase-masters", VARVE_KEPT_IN(hbase.masters),
         "masters of the HBase cluster, which are asked where no hbase-quorum is given: "
         "host:port,host:port"),
    Text("hbase-znode-parent", VARVE_KEPT_IN(hbase.znode_parent),
         "node of ZooKeeper below which the HBase cluster says where its servers are "
         "(zookeeper.znode.parent)"),
    Text("hbase-table", VARVE_KEPT_IN(hbase.table),
         "main table of the store in the HBase cluster; the names of its other tables begin with "
         "it"),
    Switch("hbase-create", VARVE_KEPT_IN(hbase.create),
           "make tables of the store that are missing"),
    Word("hbase-security", kHbaseSecurityWords, VARVE_KEPT_IN(hbase.security),
         "how the HBase cluster knows the server: simple (it believes the name); kerberos is not "
         "supported"),
    Size("hbase-max-value", kKi, 16 * kMi, VARVE_KEPT_IN(hbase.max_value_size),
         "bytes of a value that the store over HBase takes; much more than 1 MiB harms the servers "
         "of the cluster"),
    Duration("store-deadline", kLongestStoreDeadline, VARVE_KEPT_IN(store_deadline),
             "how long a store on other machines may take to answer; then the client gets "
             "-UNAVAILABLE"),
    Switch("finalize-upgrade", VARVE_KEPT_IN(engine.finalize_upgrade),
           "have a store that an earlier version made go over to the present format, which that "
           "version cannot read any more; without it the store keeps no times and no history"),
    Text("backupdirname", VARVE_KEPT_IN(server.backup_directory),
         "name of the directory within dir that BACKUP keeps its files in")
        .Checked(DirectoryNameNeeded),
    Number(
        SettingKind::kSeconds, "backup-sealed-ttl", 0, kYear.count(),
        VARVE_KEPT_IN(server.backup_ttl),
        "seconds for which a backup's files stay that nobody asks about; 0: until BACKUP CLEANUP")
        .Live(ApplyBackupTtl),
    Milliseconds("keep", kYear * 100, VARVE_KEPT_IN(engine.history.time_ms),
                 "how long replaced and deleted versions stay readable, e.g. 1d; 0: no limit by "
                 "time, and none are kept where keep-bytes is 0, too"),
    Size("keep-bytes", 0, 16 * kTi, VARVE_KEPT_IN(engine.history.bytes),
         "bytes of keys and values that may have been written since the oldest readable version; "
         "0: no limit by size"),
    Size("change-retention-bytes", 0, 16 * kTi, VARVE_KEPT_IN(engine.changes.bytes),
         "bytes of changes that the store retains for readers of the change feed, e.g. 256MiB; 0: "
         "no limit by size, and none are retained where change-retention-time is 0, too"),
    Milliseconds("change-retention-time", kYear * 100, VARVE_KEPT_IN(engine.changes.time_ms),
                 "how long changes are retained for readers of the change feed, e.g. 1d; 0: no "
                 "limit by time"),
    Word("sync", kSyncWords, VARVE_KEPT_IN(engine.sync),
         "when a write is acknowledged: always (it is on disk), everysec (the kernel has it, "
         "synced each second) or no "
         "(the kernel has it)")
        .Live(ApplySync)
        .CalledByRedis("appendfsync"),
    Word("sync-backend", kSyncBackendWords, VARVE_KEPT_IN(engine.sync_backend),
         "how synced writes get to the disk: pwrite (and fdatasync), direct (O_DIRECT and O_DSYNC, "
         "two groups at once), or auto: direct, and pwrite where files do not allow it"),
    Size("group-max-bytes", 4 * kKi, kGi, VARVE_KEPT_IN(engine.group_max_bytes),
         "bytes of writes that are synced together at most"),
    Duration("group-max-delay", std::chrono::seconds(10), VARVE_KEPT_IN(engine.group_max_delay),
             "how long a write may wait for company before it is synced, e.g. 200us"),
    // Other servers: whom it follows, and who follows it.
    Text("replicaof", VARVE_KEPT_IN(server.replication.primary),
         "host and port of the server to follow, with a space between, until REPLICAOF says "
         "otherwise; empty: none")
        .Checked(PrimaryNeeded),
    Text("primary-user", VARVE_KEPT_IN(server.replication.user),
         "user that it logs in as there; empty: default")
        .Live(ApplyLink)
        .CalledByRedis("masteruser"),
    Text("primary-auth", VARVE_KEPT_IN(server.replication.password),
         "password that it gives there; empty: none. Not on the command line, where other users "
         "can read it")
        .Live(ApplyLink)
        .CalledByRedis("masterauth")
        .Secret(),
    Switch("tls-replication", VARVE_KEPT_IN(server.replication.tls),
           "speak TLS to the server that it follows, with the certificates of the tls- settings")
        .Live(ApplyLink),
    Text("replica-announce-ip", VARVE_KEPT_IN(server.replication.announced_host),
         "host by which others reach this follower; empty: the one that it connects from")
        .Live(ApplyLink)
        .CalledByRedis("slave-announce-ip"),
    Integer("replica-announce-port", 0, kLastPort, VARVE_KEPT_IN(server.replication.announced_port),
            "port by which others reach this follower; 0: the one that it listens on")
        .Live(ApplyLink)
        .CalledByRedis("slave-announce-port"),
    Integer("replica-priority", 0, INT32_MAX, VARVE_KEPT_IN(server.replication.priority),
            "number that INFO shows, for programs that choose the next primary: the smallest goes "
            "first, 0 never")
        .Live(ApplyLink)
        .CalledByRedis("slave-priority"),
    Text("replica-read-only", VARVE_KEPT_IN(server.replication.read_only),
         "whether a follower refuses the writes of its clients: yes")
        .Checked(ReadOnlyNeeded)
        .Live(ApplyLink)
        .CalledByRedis("slave-read-only"),
    Switch("replica-serve-stale-data", VARVE_KEPT_IN(server.replication.serves_stale_data),
           "let a follower answer while its link to the primary is down; no: MASTERDOWN")
        .Live(ApplyStaleData)
        .CalledByRedis("slave-serve-stale-data"),
    Size("replica-retention-bytes", kMi, 16 * kTi,
         VARVE_KEPT_IN(server.replication.retention_bytes),
         "bytes of changes that are kept for followers that are behind; one that is further behind "
         "takes a copy of the store")
        .CalledByRedis("repl-backlog-size"),
    Integer("sync-replicas", 0, kMostFollowers, VARVE_KEPT_IN(server.replication.sync_followers),
            "followers that have a write on disk, too, before it is acknowledged; 0: none")
        .Live(ApplySyncReplicas),
    Integer("min-replicas-to-write", 0, kMostFollowers,
            VARVE_KEPT_IN(server.replication.min_followers),
            "good followers without which writes are refused with NOREPLICAS; 0: any")
        .Live(ApplyMinReplicas)
        .CalledByRedis("min-slaves-to-write"),
    Integer("min-replicas-max-lag", 0, kYear.count(), VARVE_KEPT_IN(server.replication.max_lag),
            "seconds within which a good follower was heard of; 0: min-replicas-to-write is not "
            "looked at")
        .Live(ApplyMinReplicas)
        .CalledByRedis("min-slaves-max-lag"),
    // What it may use.
    Integer("threads", 0, 256, VARVE_KEPT_IN(server.threads),
            "threads of the pool; 0: one for each core, at least 2"),
    Integer("io-threads", 0, 256, VARVE_KEPT_IN(server.io_threads),
            "threads that read and answer; 0: one for every two cores, 1 to 16"),
    Integer("store-threads", 1, 4096, VARVE_KEPT_IN(server.store_threads),
            "threads that wait for a store on other machines, at most; they come and go with the "
            "requests"),
    Word("execution", kExecutionWords, VARVE_KEPT_IN(server.execution),
         "where requests run: adaptive, pool (always on the pool) or inline (always where they "
         "were read)"),
    Size("memory-limit", 0, 16 * kTi, VARVE_KEPT_IN(memory_limit),
         "memory for write buffers, tables, block cache, mappings and connections together, which "
         "share it where their sizes are left alone; 0: half of what this machine or control group "
         "has"),
    Size("write-buffer-size", 4 * kKi, 64 * kGi, VARVE_KEPT_IN(engine.write_buffer_size),
         "memory of one write buffer; when it is full it becomes a segment")
        .SharesMemory(),
    Size("offset-table-cache-size", 0, 16 * kTi, VARVE_KEPT_IN(engine.offset_table_cache_size),
         "memory for offset tables, which find a record in one read")
        .SharesMemory(),
    Size("block-cache-size", 0, 16 * kTi, VARVE_KEPT_IN(engine.block_cache_size),
         "memory for records that are read often")
        .SharesMemory(),
    Size("mapped-read-budget", 0, 16 * kTi, VARVE_KEPT_IN(engine.mapped_read_budget),
         "resident memory for mappings, through which gets read records and values out of the "
         "kernel's cache; 0: nothing is mapped")
        .SharesMemory(),
    Size("value-separation-size", 0, 1 * kGi, VARVE_KEPT_IN(engine.value_separation_size),
         "values from this size up, at least 1 KiB, are written once and pointed to; 0: none are"),
    Integer(
        "max-background-jobs", 0, kMostBackgroundJobs, VARVE_KEPT_IN(engine.max_background_jobs),
        "threads that flush and merge together, at least 2; 0: one for every two cores, 2 to 8"),
    HowCompressed("compression", VARVE_KEPT_IN(engine.compression),
                  "how merges compress values, where COMPRESS of a namespace doesn't say: none, "
                  "lz4, zstd or zstd:LEVEL"),
    // What it tells.
    Word("loglevel", kLogLevels, VARVE_KEPT_IN(log_level),
         "trace, debug, info, warning, error, critical or off")
        .Live(ApplyLogLevel),
    Integer("slowlog-log-slower-than", -1, 1'000'000'000'000, VARVE_KEPT_IN(server.slow_log_micros),
            "microseconds from which on a request is kept for SLOWLOG; 0: each, -1: none")
        .Live(ApplySlowLog),
    Integer("slowlog-max-len", 0, 1'000'000, VARVE_KEPT_IN(server.slow_log_entries),
            "requests kept for SLOWLOG")
        .Live(ApplySlowLog),
    Text("metrics-prefixes", VARVE_KEPT_IN(server.metrics_prefixes),
         "prefixes of keys of database 0, separated by commas, whose bytes the metrics show"),
    Text("logfile", VARVE_KEPT_IN(log_file),
         "file to append the log to, opened anew at SIGHUP; empty: standard error"),
};

#undef VARVE_KEPT_IN

std::string Takes(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kText:
      return "takes a text";
    case SettingKind::kWord:
      return fmt::format("takes {}", fmt::join(setting.words, ", "));
    case SettingKind::kSwitch:
      return "takes yes or no";
    case SettingKind::kInteger:
      return fmt::format("takes {} to {}", setting.min, setting.max);
    case SettingKind::kSize:
      if (setting.max == 0) return "takes only 0";
      return fmt::format("takes {} to {}", FormatSize(static_cast<uint64_t>(setting.min)),
                         FormatSize(static_cast<uint64_t>(setting.max)));
    case SettingKind::kDuration:
      return fmt::format("takes 0 to {}", FormatDuration(std::chrono::nanoseconds(setting.max)));
    case SettingKind::kSeconds:
      return fmt::format("takes 0 to {} seconds, or a time such as 1h", setting.max);
    case SettingKind::kMode:
      return "takes octal permissions such as 700";
    case SettingKind::kEvents:
      return std::string(kKeyEventsNeeded);
    case SettingKind::kCompression:
      return fmt::format("takes none, lz4, zstd, or zstd:1 to zstd:{}", kHighestZstdLevel);
    case SettingKind::kLimits:
      return "takes normal or pubsub, bytes, bytes, seconds; such as: pubsub 32MiB 8MiB 60";
  }
  return "";
}

absl::StatusOr<int64_t> ParseDigits(std::string_view text, int base) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size())
    return absl::InvalidArgumentError("no number");
  return number;
}

// The number that `text` stands for, not yet held against the bounds.
absl::StatusOr<int64_t> ParseNumber(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case SettingKind::kText:
    case SettingKind::kLimits:
      break;
    case SettingKind::kWord:
      for (size_t i = 0; i < setting.words.size(); ++i) {
        if (setting.words[i] == text) return static_cast<int64_t>(i);
      }
      break;
    case SettingKind::kSwitch:
      if (text == "yes" || text == "true") return 1;
      if (text == "no" || text == "false") return 0;
      break;
    case SettingKind::kInteger:
      return ParseDigits(text, 10);
    case SettingKind::kMode:
      return ParseDigits(text, 8);
    case SettingKind::kEvents:
      if (const std::optional<uint32_t> classes = ParseKeyEvents(text)) return *classes;
      break;
    case SettingKind::kCompression:
      if (const std::optional<Compression> how = ParseCompression(text))
        return CompressionNumber(*how);
      break;
    case SettingKind::kSize: {
      VARVE_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSize(text));
      return static_cast<int64_t>(std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max()));
    }
    case SettingKind::kSeconds: {
      if (const absl::StatusOr<int64_t> seconds = ParseDigits(text, 10); seconds.ok())
        return *seconds;
      VARVE_ASSIGN_OR_RETURN(const std::chrono::nanoseconds time, ParseDuration(text));
      if (time % std::chrono::seconds(1) != time.zero()) break;
      return std::chrono::duration_cast<std::chrono::seconds>(time).count();
    }
    case SettingKind::kDuration: {
      VARVE_ASSIGN_OR_RETURN(const std::chrono::nanoseconds delay, ParseDuration(text));
      return delay.count();
    }
  }
  return absl::InvalidArgumentError("no value");
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(' '); begin < text.size();
       begin = text.find_first_not_of(' ', begin)) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Sets the classes that `text` names; the other stays as it is, as in Redis. False: it can't be
// read.
bool ParseLimits(std::string_view text, ServerConfig* config) {
  const std::vector<std::string_view> words = WordsOf(text);
  if (words.empty() || words.size() % 4 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 4) {
    const absl::StatusOr<uint64_t> hard = ParseSize(words[i + 1]);
    const absl::StatusOr<uint64_t> soft = ParseSize(words[i + 2]);
    const absl::StatusOr<int64_t> seconds = ParseDigits(words[i + 3], 10);
    if ((words[i] != "normal" && words[i] != "pubsub") || !hard.ok() || !soft.ok() || !seconds.ok())
      return false;
    if (*seconds < 0 || *seconds > kYear.count()) return false;
    OutputLimits* const limits =
        words[i] == "normal" ? &config->server.reply_limits : &config->server.message_limits;
    *limits = {*hard, *soft, std::chrono::seconds(*seconds)};
  }
  return true;
}

std::string ShowLimits(std::string_view name, const OutputLimits& limits, bool short_sizes) {
  const auto size = [&](size_t bytes) {
    return short_sizes ? FormatSize(bytes) : fmt::to_string(bytes);
  };
  return fmt::format("{} {} {} {}", name, size(limits.hard), size(limits.soft),
                     limits.soft_time.count());
}

std::string Show(const Setting& setting, const ServerConfig& config, bool short_sizes) {
  if (setting.kind == SettingKind::kLimits) {
    return ShowLimits("normal", config.server.reply_limits, short_sizes) + " " +
           ShowLimits("pubsub", config.server.message_limits, short_sizes);
  }
  if (setting.kind == SettingKind::kText) return setting.text(const_cast<ServerConfig&>(config));
  const int64_t value = setting.get(config);
  switch (setting.kind) {
    case SettingKind::kWord:
      return std::string(setting.words[static_cast<size_t>(value)]);
    case SettingKind::kSwitch:
      return value != 0 ? "yes" : "no";
    case SettingKind::kSize:
      return short_sizes ? FormatSize(static_cast<uint64_t>(value)) : fmt::to_string(value);
    case SettingKind::kDuration:
      return FormatDuration(std::chrono::nanoseconds(value));
    case SettingKind::kMode:
      return fmt::format("{:o}", value);
    case SettingKind::kCompression:
      return FormatCompression(CompressionOf(value));
    case SettingKind::kEvents:
      return ShowKeyEvents(static_cast<uint32_t>(value));
    default:
      return fmt::to_string(value);
  }
}

}  // namespace

int IoLoopsOf(const ServerConfig& config) {
  if (config.server.io_threads > 0) return config.server.io_threads;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(cores / 2, 1, 16);
}

absl::Span<const Setting> AllSettings() { return kSettings; }

const Setting* FindSetting(std::string_view name) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string SettingSuggestion(std::string_view name, std::string_view dashes) {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) {
    if (!setting.redis_name.empty() && setting.redis_name == name) {
      return fmt::format(", did you mean {}{}?", dashes, setting.name);
    }
    names.push_back(setting.name);
  }
  const std::string_view nearest = NearestText(name, names);
  return nearest.empty() ? std::string() : fmt::format(", did you mean {}{}?", dashes, nearest);
}

absl::Status AssignSetting(const Setting& setting, std::string_view text, ServerConfig* config) {
  if (setting.kind == SettingKind::kText) {
    if (text.find('\0') != std::string_view::npos)
      return absl::InvalidArgumentError("takes no zero bytes");
    std::string value(text);
    if (setting.refuses != nullptr) {
      if (const std::string needed = setting.refuses(value); !needed.empty())
        return absl::InvalidArgumentError(needed);
    }
    setting.text(*config) = std::move(value);
  } else if (setting.kind == SettingKind::kLimits) {
    if (!ParseLimits(text, config)) return absl::InvalidArgumentError(Takes(setting));
  } else {
    const absl::StatusOr<int64_t> value = ParseNumber(setting, text);
    if (!value.ok() || *value < setting.min || *value > setting.max)
      return absl::InvalidArgumentError(Takes(setting));
    setting.set(*config, *value);
  }
  config->given.insert(setting.name);
  return absl::OkStatus();
}

std::string ShowSetting(const Setting& setting, const ServerConfig& config) {
  return Show(setting, config, false);
}
std::string WriteSetting(const Setting& setting, const ServerConfig& config) {
  return Show(setting, config, true);
}

namespace {

// Refuses settings of a cluster for a store that is not in one, where they would have no effect. A
// default may be written out, as in a file that lists all settings.
absl::Status CheckNoCluster(const ServerConfig& config) {
  const ServerConfig defaults;
  std::string found;
  for (const Setting& setting : AllSettings()) {
    if (!setting.name.starts_with("hbase-")) continue;
    const std::string value = WriteSetting(setting, config);
    if (value == WriteSetting(setting, defaults)) continue;
    found += fmt::format("{}{}={}", found.empty() ? "" : ", ", setting.name, value);
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: settings of an HBase cluster take store=hbase, and store is embedded, which "
                  "keeps all keys in dir; set store=hbase, too, or leave them out",
                  found));
}

absl::Status CheckStore(const ServerConfig& config) {
  if (config.store != StoreKind::kHbase) return CheckNoCluster(config);
  if (config.store_deadline < kShortestStoreDeadline) {
    return absl::InvalidArgumentError(
        "store-deadline: less than 100ms is too short for a cluster to answer");
  }
  const HbaseSettings& hbase = config.hbase;
  if (hbase.security == HbaseSecurity::kKerberos) {
    return absl::InvalidArgumentError(
        "hbase-security=kerberos: Kerberos is not supported; the cluster has to take "
        "authentication `simple`, in a network of its own");
  }
  if (hbase.quorum.empty() == hbase.masters.empty()) {
    return absl::InvalidArgumentError(
        "store=hbase takes one of hbase-quorum and hbase-masters, which say where the cluster is");
  }
  if (!hbase.znode_parent.starts_with('/') || hbase.znode_parent.ends_with('/')) {
    return absl::InvalidArgumentError(
        "hbase-znode-parent: a node of ZooKeeper begins with / and does not end with it, such as "
        "/hbase");
  }
  if (!hbase.masters.empty() && hbase.znode_parent != HbaseSettings().znode_parent) {
    return absl::InvalidArgumentError(
        "hbase-znode-parent and hbase-masters: the node is one of ZooKeeper, and masters are asked "
        "instead of it; give hbase-quorum in place of hbase-masters, or leave the node out");
  }
  if (!config.server.replication.primary.empty()) {
    return absl::InvalidArgumentError(
        "store=hbase and replicaof: the servers of one cluster share its keys, and none of them "
        "follows another");
  }
  return CheckDataLimits(config);
}

}  // namespace

absl::Status CheckDataLimits(const ServerConfig& config) {
  if (config.store != StoreKind::kHbase) return absl::OkStatus();
  const std::string& policy = config.server.max_memory_policy;
  const bool evicts = ParseEvictionPolicy(policy).value_or(EvictionRule()).on();
  if (config.server.max_memory == 0 && !evicts && config.max_disk_bytes == 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "store=hbase with maxmemory, maxmemory-policy or max-disk-bytes: no server can bound what "
      "all of them keep in the cluster");
}

absl::Status CheckTogether(const ServerConfig& config) {
  if (absl::Status store = CheckStore(config); !store.ok()) return store;
  if (!config.password_file.empty() && !config.server.password.empty()) {
    return absl::InvalidArgumentError(
        "requirepass and requirepass-file: only one of them can hold the password");
  }
  return absl::OkStatus();
}

absl::Status LoadPassword(ServerConfig* config) {
  if (config->password_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> password = ReadSecretFile(config->password_file);
  if (!password.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("requirepass-file: {}", std::string(password.status().message())));
  }
  config->server.password = *std::move(password);
  return absl::OkStatus();
}

absl::Span<const std::pair<std::string_view, std::string_view>> FixedSettings() {
  static constexpr std::pair<std::string_view, std::string_view> kFixed[] = {
      {"appendonly", "yes"},
      {"cluster-enabled", "no"},
      {"lfu-decay-time", "1"},
      {"lfu-log-factor", "10"},
      {"maxmemory-eviction-tenacity", "10"},
      {"maxmemory-samples", "5"},
      {"save", ""},
  };
  return kFixed;
}

}  // namespace varve
