// server_main, which is installed as varve-server: opens the store that --store names, by default
// that in --dir, and serves it until SIGTERM or SIGINT. Exit codes: 0 after a graceful stop, 1 when
// the store or the address can't be had or the end was not clean, 2 for wrong settings. With
// --check-config: 0, or 1 for wrong settings.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/access/acl_file.h"
#include "server/config/config_file.h"
#include "server/config/descriptor_limit.h"
#include "server/config/memory_plan.h"
#include "server/config/server_flags.h"
#include "server/following/incoming_store.h"
#include "server/http/http_server.h"
#include "server/net/passed_sockets.h"
#include "server/process_signals.h"
#include "server/replication/replication_file.h"
#include "server/server.h"
#include "server/service_manager.h"
#include "server/statistics/server_log.h"
#include "server/store_opening.h"
#include "server/tls/tls_contexts.h"
#include "server/user_commands/command_rights.h"
#include "spdlog/spdlog.h"
#include "type/version.h"
#include "util/base/status.h"
#include "util/os/bounded_file_system.h"
#include "util/os/file_system.h"
#include "util/os/mapped_reads.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

// SIGHUP: the file of the log or of the audit log was moved away, or the password's or a
// certificate's changed.
void Reload(ServerState& state) {
  const absl::Status log = ReopenServerLog();
  if (!log.ok()) spdlog::error("SIGHUP: the old file stays in use: {}", log.ToString());
  state.clients.audit.Reopen();
  const absl::Status password = state.configuration.ReloadPassword(state);
  if (!password.ok())
    spdlog::error("SIGHUP: the old password stays in force: {}", password.ToString());
  const absl::Status tls = state.tls->Reload();
  if (!tls.ok())
    spdlog::error("SIGHUP: the old certificate and key stay in use: {}",
                  std::string(tls.message()));
  if (log.ok() && password.ok() && tls.ok())
    spdlog::info("SIGHUP: the files of logs, password and certificates, if any, were opened anew");
}

// Tells the service manager that the server is ready, and obeys signals until one of them stops it,
// or until `restarts` is set: to the service manager that is a reload.
void RunUntilStopped(Server& server, const std::string& where, const ServiceManager& manager,
                     ProcessSignals* signals, const std::atomic<bool>& restarts) {
  const std::string ready = fmt::format("READY=1\nSTATUS=serving {}", where);
  manager.Notify(ready);
  const auto reload = [&] {
    manager.NotifyReloading();
    const auto work = [&server, &manager, ready] {
      Reload(server.state());
      manager.Notify(ready);
    };
    // A file system that hangs must not keep this thread from the watchdog and from other signals.
    if (!server.RunOnPool(work)) work();
  };
  signals->WaitForStop(reload, manager.watchdog() / 2, [&] {
    if (server.Responsive()) manager.Notify("WATCHDOG=1");
  });
  if (restarts.load()) return manager.NotifyReloading();
  manager.Notify("STOPPING=1\nSTATUS=stopping");
}

// What a server that begins anew takes over from the one before.
struct TakenOver {
  ServerCommandLine line;
  std::vector<User> users;  // empty: those of the settings
};

// Keeps what a server that begins anew goes on with: the settings and users that were changed while
// this one ran.
void TakeOver(const ServerState& state, TakenOver* taken) {
  taken->line.config = state.configuration.given();
  taken->line.fitted = state.configuration.in_force();
  for (const UserPointer& user : state.clients.users.All()) taken->users.push_back(*user);
}

// Returns what is wrong with the file of users, if one is named.
absl::Status CheckAclFile(const ServerOptions& options) {
  if (options.acl_file.empty()) return absl::OkStatus();
  const RuleContext context{.catalog = AccessCatalog()};
  return ReadAclFile(context, options.acl_file).status();
}

// Tells what is wrong with the files that the options name before the log is replayed, which may
// take long. False: something is.
bool UseFiles(const ServerOptions& options, TlsContexts* tls) {
  absl::Status status = tls->Use(options.tls);
  if (status.ok()) status = CheckAclFile(options);
  if (!status.ok()) spdlog::critical("{}", std::string(status.message()));
  return status.ok();
}

// Returns the bytes that flushes of everything in memory take, and a merge of two segments.
uint64_t DiskReserve(const EngineOptions& options) {
  const auto buffers = static_cast<uint64_t>(options.max_full_write_buffers) + 1;
  return buffers * options.write_buffer_size + 2 * options.segment_size;
}

// Puts the copy of a primary's store in place that an earlier run has left, if there is one, and
// opens the store.
absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const ServerConfig& config,
                                                         const ServiceManager& manager,
                                                         BoundedFileSystem* disk) {
  VARVE_ASSIGN_OR_RETURN(const bool installed,
                         InstallIncomingStore(PosixFileSystem(), config.directory));
  if (installed) spdlog::info("The copy of the primary's store is in place");
  EngineOptions options = config.engine;
  if (disk != nullptr) {
    const absl::Status measured = disk->Measure();
    if (!measured.ok() && !absl::IsNotFound(measured)) return measured;
    options.file_system = disk;
  }
  VARVE_ASSIGN_OR_RETURN(const ReplicationRecord record,
                         ReadReplicationFile(PosixFileSystem(), config.directory));
  // From the start on, as what is in the log at present is for followers, too.
  if (record.retains && !options.changes.on())
    options.changes.bytes = config.server.replication.retention_bytes;
  options.follows =
      record.primary.value_or(ParsePrimaryAddress(config.server.replication.primary)).named();
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(config.directory, options,
                          [&manager](const ReplayProgress& done) { manager.NotifyReplay(done); });
  if (store.ok() && disk != nullptr) disk->KeepReserve();
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const ServerConfig& config,
                                                 const ServiceManager& manager,
                                                 BoundedFileSystem* disk) {
  return config.store == StoreKind::kHbase ? OpenHbaseStore(config)
                                           : OpenEmbeddedStore(config, manager, disk);
}

// Returns what the server may ask of the program around it.
ServerProgram ProgramAround(TakenOver* taken, const std::shared_ptr<TlsContexts>& tls,
                            ProcessSignals* signals, std::atomic<bool>* restarts,
                            BoundedFileSystem* disk) {
  return {.config_file = taken->line.config_file,
          .given = taken->line.config,
          .shut_down = [signals] { signals->RequestStop(); },
          .restart =
              [signals, restarts] {
                restarts->store(true);
                signals->RequestStop();
              },
          .users = std::exchange(taken->users, {}),
          .tls = tls,
          .disk = disk};
}

// Serves until a signal stops it, or until a copy of the primary's store is to take the place of
// this one: then `*again` is set. Returns the exit code.
int ServeOnce(TakenOver* taken, PassedSockets passed, bool* again) {
  *again = false;
  ProcessSignals signals;  // from here on a signal waits until it can be obeyed
  const ServiceManager manager;
  ServerConfig& config = taken->line.fitted;
  ServerOptions& options = config.server;
  using Role = PassedSockets::Role;
  if (passed.Has(Role::kTls)) options.tls.port = passed.PortOf(Role::kTls);
  const auto begin = std::chrono::steady_clock::now();
  const auto tls = std::make_shared<TlsContexts>();
  if (!UseFiles(options, tls.get())) return 1;
  HttpServer http(tls);
  if (const absl::Status status = http.Start(config, passed.Take(Role::kHttp)); !status.ok()) {
    spdlog::critical("{}", std::string(status.message()));
    return 1;
  }
  std::optional<BoundedFileSystem> disk;
  if (config.max_disk_bytes != 0) {
    const uint64_t mapped = config.engine.mapped_read_budget;
    disk.emplace(mapped > 0 ? MappedFileSystem(mapped) : PosixFileSystem(), config.directory,
                 config.max_disk_bytes, DiskReserve(config.engine));
  }
  BoundedFileSystem* const bound = disk ? &*disk : nullptr;
  absl::StatusOr<std::unique_ptr<Store>> store = OpenStore(config, manager, bound);
  if (!store.ok()) {
    spdlog::critical("The store in {} can't be opened: {}", StorePlace(config),
                     store.status().ToString());
    return 1;
  }
  const auto opened = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  std::atomic<bool> restarts{false};
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(store->get(), config, ProgramAround(taken, tls, &signals, &restarts, bound),
                    signals.io(), std::move(passed));
  if (!server.ok()) {
    spdlog::critical("{}", server.status().ToString());
    return 1;
  }
  http.ServeFor(&(*server)->state());
  const std::string places = (*server)->Places();
  spdlog::info("varve {} serves {} on {}, opened in {} ms", kVarveVersion, StorePlace(config),
               places, opened.count());
  RunUntilStopped(**server, places, manager, &signals, restarts);
  // A copy that is complete only now waits for the next start.
  *again = restarts.load();
  (*server)->Stop();
  http.Stop();
  TakeOver((*server)->state(), taken);
  server->reset();
  if (const absl::Status closed = (*store)->Close(); !closed.ok()) {
    spdlog::critical("The store could not be closed cleanly: {}", closed.ToString());
    return 1;
  }
  return 0;
}

int Serve(ServerCommandLine line, const PassedSockets& passed) {
  TakenOver taken{.line = std::move(line)};
  ServerOptions& options = taken.line.fitted.server;
  if (const size_t fits = FitClients(options.max_clients); fits < options.max_clients) {
    options.max_clients = fits;
    spdlog::warn("The limit on open files is too low: at most {} clients are served", fits);
  }
  SpareMemory(taken.line.fitted.memory_limit);
  for (;;) {
    absl::StatusOr<PassedSockets> sockets = passed.Duplicate();
    if (!sockets.ok()) {
      spdlog::critical("{}", std::string(sockets.status().message()));
      return 1;
    }
    bool again = false;
    const int code = ServeOnce(&taken, *std::move(sockets), &again);
    if (again && code == 0) continue;
    if (code == 0) spdlog::info("Stopped");
    return code;
  }
}

// What nothing can be done about, in whatever thread: said in words instead of a core dump. The log
// makes this end as safe as any.
[[noreturn]] void EndWithReason() {
  const auto say = [](const char* text) {
    [[maybe_unused]] const auto left = write(STDERR_FILENO, text, strlen(text));
  };
  say(program_invocation_short_name);
  try {
    if (const std::exception_ptr exception = std::current_exception())
      std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    say(": out of memory; the caches and write buffers are the largest part, see --help\n");
    std::_Exit(1);
  } catch (const std::system_error& failed) {
    say(": the system gives no more threads, files or memory: ");
    say(failed.what());
    say("\n");
    std::_Exit(1);
  } catch (...) {
    say(": a defect of the program\n");
  }
  std::abort();
}

std::string VersionLine() {
  return fmt::format("varve {} (commit {}, manifest format {})\n", kVarveVersion, kVarveCommit,
                     kManifestFormatVersion);
}

int Main(int argc, char** argv) {
  std::set_terminate(EndWithReason);
  umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  const bool only_check = std::any_of(
      argv, argv + argc, [](std::string_view flag) { return flag == "--check-config"; });
  absl::StatusOr<ServerCommandLine> line = ParseServerCommandLine(argc, argv, environ);
  if (!line.ok()) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name,
               std::string(line.status().message()));
    return only_check ? 1 : 2;
  }
  if (line->check_config) {
    absl::Status files = TlsContexts().Use(line->config.server.tls);
    if (files.ok()) files = CheckAclFile(line->config.server);
    if (!files.ok()) {
      fmt::print(stderr, "{}: {}\n", program_invocation_short_name, std::string(files.message()));
      return 1;
    }
  }
  if (line->help || line->version || line->example_config || line->check_config) {
    fmt::print("{}", line->help             ? ServerHelp()
                     : line->version        ? VersionLine()
                     : line->example_config ? ExampleConfig()
                                            : "The settings are fine\n");
    return 0;
  }
  absl::StatusOr<PassedSockets> passed = PassedSockets::FromEnvironment();
  if (!passed.ok()) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name,
               std::string(passed.status().message()));
    return 2;
  }
  if (const absl::Status status = StartServerLog(line->config); !status.ok()) {
    fmt::print(stderr, "{}: --{}\n", program_invocation_short_name, std::string(status.message()));
    return 1;
  }
  return Serve(*std::move(line), *passed);
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) { return varve::Main(argc, argv); }
