#include "benchmark/server/contenders.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "benchmark/server/load_generator.h"

namespace varve::bench {
namespace {

std::vector<std::string> Arguments(const std::string& id, const ServerSettings& settings,
                                   uint16_t port) {
  const std::string port_text = std::to_string(port);
  if (id == kVarve || id == kVarveRetaining) {
    const std::string program = ProgramDirectory() + "/server_main";
    if (!std::filesystem::exists(program))
      Fail("there is no " + program + ": build it first, or leave varve out of --servers");
    std::vector<std::string> arguments = {program,
                                          "--bind=127.0.0.1",
                                          "--http-port=0",
                                          "--port=" + port_text,
                                          "--dir=" + settings.directory,
                                          "--sync=" + settings.sync};
    if (id == kVarveRetaining) {
      for (const char* setting :
           {"--change-retention-bytes=256MiB", "--change-retention-time=1d", "--keep=1d"})
        arguments.push_back(setting);
    }
    return arguments;
  }
  if (id == kNull) {
    return {ProgramPath(), "--null_server_port=" + port_text,
            fmt::format("--null_server_value_size={}", settings.value_size)};
  }
  return {"redis-server",
          "--bind",
          "127.0.0.1",
          "--port",
          port_text,
          "--dir",
          settings.directory,
          "--save",
          "",
          "--appendonly",
          id == kRedis ? "yes" : "no",
          "--appendfsync",
          settings.sync,
          "--auto-aof-rewrite-percentage",
          "0",
          "--loglevel",
          "warning"};
}

// The arguments for TLS.
std::vector<std::string> TlsArguments(const std::string& id, const CertificateFiles& files,
                                      uint16_t port) {
  const std::string port_text = std::to_string(port);
  if (id == kNull) return {};
  if (id == kVarve || id == kVarveRetaining) {
    return {"--tls-port=" + port_text, "--tls-cert-file=" + files.certificate,
            "--tls-key-file=" + files.key, "--tls-auth-clients=no"};
  }
  // Redis does not start without a file of authorities, which it uses for certificates of clients.
  return {"--tls-port",         port_text, "--tls-cert-file",    files.certificate,
          "--tls-key-file",     files.key, "--tls-ca-cert-file", files.certificate,
          "--tls-auth-clients", "no"};
}

// The program is started by a shell that enters the group first.
std::vector<std::string> Within(const std::string& group,
                                const std::vector<std::string>& arguments) {
  if (group.empty()) return arguments;
  std::vector<std::string> within = {"/bin/sh", "-c", "echo 0 >\"$0/cgroup.procs\" && exec \"$@\"",
                                     group};
  within.insert(within.end(), arguments.begin(), arguments.end());
  return within;
}

}  // namespace

const std::vector<Contender>& AllContenders() {
  static const std::vector<Contender>* const contenders =
      new std::vector<Contender>{{kVarve, "Varve"},
                                 {kVarveRetaining, "Varve with a history"},
                                 {kRedis, "Redis"},
                                 {kRedisWithoutLog, "Redis without its log"},
                                 {kNull, "null server"}};
  return *contenders;
}

CertificateFiles MakeCertificate(const std::string& directory) {
  const CertificateFiles files{directory + "/certificate.pem", directory + "/key.pem"};
  Capture({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
           "-nodes", "-days", "30", "-subj", "/CN=benchmark", "-addext",
           "subjectAltName=IP:127.0.0.1", "-out", files.certificate, "-keyout", files.key});
  return files;
}

Server::Server(Contender contender, ServerSettings settings)
    : contender_(std::move(contender)),
      settings_(std::move(settings)),
      port_(FreePort()),
      tls_port_(FreePort()) {
  MakeEmptyDirectory(settings_.directory);
  if (!Start("")) Fail(contender_.title + " was killed");
}

Server::~Server() {
  process_.reset();
  RemoveDirectory(settings_.directory);
}

void Server::Stop() {
  process_->Stop();
  process_.reset();
}

bool Server::Start(const std::string& memory_group) {
  constexpr auto kStep = std::chrono::milliseconds(20);
  constexpr int kMaxSteps = 1500;
  std::vector<std::string> arguments = Arguments(contender_.id, settings_, port_);
  if (settings_.certificate) {
    const std::vector<std::string> tls =
        TlsArguments(contender_.id, *settings_.certificate, tls_port_);
    arguments.insert(arguments.end(), tls.begin(), tls.end());
  }
  arguments.insert(arguments.end(), settings_.flags.begin(), settings_.flags.end());
  process_ = std::make_unique<Child>(Within(memory_group, arguments), settings_.directory + ".log");
  for (int step = 0; !AnswersPing(port_); ++step) {
    const bool running = process_->Running();
    if (process_->WasKilled()) return false;  // maybe since it was running
    if (!running) Fail(contender_.title + " ended instead of serving");
    if (step == kMaxSteps) Fail(contender_.title + " does not answer");
    std::this_thread::sleep_for(kStep);
  }
  return true;
}

}  // namespace varve::bench
