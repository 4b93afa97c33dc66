// The contenders are the servers that server_benchmark compares. It starts them with equal
// durability, each with its own port and directory.
//
// Varve: server_main beside this program, and once more with a history (retained changes and old
// versions of a day). Redis: Debian's redis-server with its append-only file
// (appendfsync as Varve's --sync), no snapshots, and no rewriting of the file during the run (which
// would fork and cost it throughput); and once more without that file, which promises nothing.
// Null: null_server.h.
//
// With a certificate, Varve and Redis serve TLS on a second port, too, and ask clients for none.
//
// Thread-safety: one thread uses a server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/process.h"

namespace varve::bench {

struct Contender {
  std::string id;     // as in --servers
  std::string title;  // as in the table
};

inline constexpr const char* kVarve = "varve";
inline constexpr const char* kVarveRetaining = "varve_retaining";
inline constexpr const char* kRedis = "redis";
inline constexpr const char* kRedisWithoutLog = "redis_without_log";
inline constexpr const char* kNull = "null";

// Returns all contenders, Varve first.
const std::vector<Contender>& AllContenders();

// A certificate for 127.0.0.1 that its own key signed, as files.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};

// Makes one in the directory, by the program openssl.
CertificateFiles MakeCertificate(const std::string& directory);

struct ServerSettings {
  std::string sync = "always";  // or everysec, or no
  size_t value_size = 100;      // what GET of the null server answers
  std::string directory;        // emptied at the start, removed at the end
  std::optional<CertificateFiles> certificate;
  std::vector<std::string> flags;  // further ones
};

// A server with a directory, running or not.
class Server {
 public:
  // Starts the server and waits until it answers.
  Server(Contender contender, ServerSettings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Contender& contender() const { return contender_; }
  const std::string& directory() const { return settings_.directory; }
  uint16_t port() const { return port_; }
  // Requires: the settings have a certificate.
  uint16_t tls_port() const { return tls_port_; }
  Child& process() { return *process_; }

  // Stops the server and keeps its directory.
  void Stop();
  // Starts the server again on its directory, in a memory cgroup (process_use.h; empty: none).
  // Returns false if the server is killed instead of answering.
  bool Start(const std::string& memory_group);

 private:
  const Contender contender_;
  const ServerSettings settings_;
  const uint16_t port_;
  const uint16_t tls_port_;
  std::unique_ptr<Child> process_;
};

}  // namespace varve::bench
