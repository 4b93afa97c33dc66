#include "server/http/http_server.h"

#include "spdlog/spdlog.h"
#include "util/base/assert.h"

namespace varve {

absl::Status HttpServer::Start(const ServerConfig& config, int passed) {
  const ServerOptions& options = config.server;
  VARVE_ASSERT(pages_ == nullptr && options.http_port <= 65535);
  if (options.http_port == 0 && passed < 0) return absl::OkStatus();
  pages_ = std::make_unique<HttpPages>(options, [this] { listener_.Wake(); });
  HttpPages* const pages = pages_.get();
  const auto port = static_cast<uint16_t>(options.http_port < 0 ? 0 : options.http_port);
  const absl::Status status = listener_.Start(
      options.http_bind, port,
      {.answer = [pages](const HttpRequest& request,
                         const HttpPeer& peer) { return pages->Answer(request, peer); },
       .tick = [pages] { pages->Tick(); },
       .delay = [pages](const HttpRequest& request,
                        const HttpPeer& peer) { return pages->Delay(request, peer); }},
      passed);
  if (status.ok()) {
    spdlog::info("HTTP is served at {}", listener_.place());
    return status;
  }
  pages_.reset();
  if (config.given.contains("http-port") || passed >= 0) return status;
  spdlog::warn("Metrics, health and status are not served: {} (http-port sets another port)",
               std::string(status.message()));
  return absl::OkStatus();
}

void HttpServer::ServeFor(ServerState* server) {
  if (pages_ == nullptr) return;
  VARVE_ASSERT(server != nullptr && port() != 0);
  server->configuration.NoteHttpPort(port());
  pages_->ServeFor(server);
}

}  // namespace varve
