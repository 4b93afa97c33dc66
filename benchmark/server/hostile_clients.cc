// Puts server_main under the load of clients that mean no good, one kind after the other, each on a
// fresh server, and prints by how much the server's memory grew meanwhile, and what a polite client
// beside them waited for its answers. Exits with 1 when one of the bounds is broken: 64 MB of
// growth, or 1 GB where write buffers fill, or 40 KB a connection of TLS; 20 ms for the polite
// client's p99, or 5 ms beside a single greedy client. The polite client speaks plain text, also
// where TLS on the same port is attacked.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "benchmark/help.h"
#include "benchmark/histogram.h"
#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/server/contenders.h"
#include "benchmark/server/load_generator.h"
#include "benchmark/server/tls_guests.h"

ABSL_FLAG(double, seconds, 5, "how long each load lasts once it is there");
ABSL_FLAG(std::string, dir, "",
          "folder for the data, removed at the end; empty: beside the program");
ABSL_FLAG(std::string, load, "", "only loads whose name contains this");

namespace varve::bench {
namespace {

constexpr int kManyConnections = 10000;
constexpr int kDeclaring = 200;
constexpr int kSoupCooks = 50;
constexpr int kSlowHeads = 1000;
constexpr int kHalfHellos = 1000;
constexpr int64_t kMostMemoryOfTls = 400'000'000;  // of kManyConnections
constexpr int kCounters = 64;
constexpr int kKeys = 200000;
constexpr size_t kLargeValue = 1u << 20;
constexpr int kLargeReplies = 300;
constexpr int64_t kMostMemory = 64'000'000;
constexpr int64_t kMostMemoryOfWrites = 1'000'000'000;
constexpr double kMostWait = 0.020;  // seconds
constexpr double kMostWaitBesideOne = 0.005;
constexpr std::chrono::milliseconds kGreed{50};

using Clock = std::chrono::steady_clock;

class Connection {
 public:
  explicit Connection(uint16_t port, int receive_buffer = 0)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (descriptor_ < 0 ||
        ::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      Fail("can't connect: raise the limit on open files (ulimit -n)?");
    }
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Connection() { ::close(descriptor_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // As much as the server takes; a hostile client doesn't insist.
  void SendSome(std::string_view bytes) {
    ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) Fail("the server closed a polite connection");
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // For a while as many of these requests as the server takes, and all its replies.
  void BeGreedy(std::string_view requests) {
    static char replies[1 << 20];
    for (const auto end = Clock::now() + kGreed; Clock::now() < end;) {
      const ssize_t sent = ::send(descriptor_, requests.data() + sent_, requests.size() - sent_,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) sent_ = (sent_ + static_cast<size_t>(sent)) % requests.size();
      const ssize_t got = ::recv(descriptor_, replies, sizeof(replies), MSG_DONTWAIT);
      if (got == 0) Fail("the server closed a greedy connection");
      pollfd ready{descriptor_, static_cast<short>(POLLIN | POLLOUT), 0};
      if (sent <= 0 && got <= 0) ::poll(&ready, 1, 10);
    }
  }
  // Whether the server has closed the connection.
  bool IsClosed() {
    char byte;
    const ssize_t got = ::recv(descriptor_, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  }
  void Expect(std::string_view expected) {
    std::string got;
    while (got.size() < expected.size()) {
      char buffer[1 << 16];
      const ssize_t size =
          ::recv(descriptor_, buffer, std::min(sizeof(buffer), expected.size() - got.size()), 0);
      if (size <= 0) Fail("the server closed a polite connection");
      got.append(buffer, static_cast<size_t>(size));
    }
    if (got != expected) Fail(fmt::format("expected {:.60}, got {:.60}", expected, got));
  }

 private:
  const int descriptor_;
  size_t sent_ = 0;  // of the requests that it is greedy for
};

using Connections = std::vector<std::unique_ptr<Connection>>;

std::string Resp(const std::vector<std::string>& arguments) {
  std::string bytes = fmt::format("*{}\r\n", arguments.size());
  for (const std::string& argument : arguments)
    bytes += fmt::format("${}\r\n{}\r\n", argument.size(), argument);
  return bytes;
}

void Open(uint16_t port, int count, std::string_view bytes, Connections* connections) {
  for (int i = 0; i < count; ++i) {
    connections->push_back(std::make_unique<Connection>(port));
    connections->back()->SendSome(bytes);
  }
}

struct HostileLoad {
  std::string name;
  // The port is that of HTTP where `is_http`.
  std::function<void(uint16_t port, Connections*)> begin;
  // Again and again.
  std::function<void(uint16_t port, Connections*)> keep_up = [](uint16_t, Connections*) {};
  double most_wait = kMostWait;
  int64_t most_memory = kMostMemory;
  bool is_http = false;
  bool is_tls = false;  // the port speaks TLS, too
};

// One client that never waits for a reply before it asks for more.
HostileLoad GreedyClient(std::string name, std::string requests,
                         int64_t most_memory = kMostMemory) {
  return {std::move(name), [](uint16_t port, Connections* all) { Open(port, 1, "", all); },
          [requests = std::move(requests)](uint16_t, Connections* all) {
            all->front()->BeGreedy(requests);
          },
          kMostWaitBesideOne, most_memory};
}

std::string Pipeline(const std::function<std::vector<std::string>(int)>& request) {
  std::string requests;
  for (int i = 0; i < 10000; ++i) requests += Resp(request(i));
  return requests;
}
std::string KeyOf(int i) { return fmt::format("key:{:012}", i); }

std::string Soup(std::mt19937* random) {
  static const std::vector<std::string> tokens = {
      "*",     "$",    "-1",   "3",     "1048576",       "536870912",
      "\r\n",  "\n",   "\r\n", "GET",   "SET ",          " ",
      "\"",    "'",    "\\x",  "RANGE", "*3\r\n",        "$3\r\n",
      "- +",   "\x16", "\xff", "PING",  "COUNT - +\r\n", std::string(1, '\0'),
      "POST /"};
  std::string bytes;
  for (size_t i = 20 + (*random)() % 200; i > 0; --i) bytes += tokens[(*random)() % tokens.size()];
  return bytes;
}

// Connections to the HTTP port whose heads never end; the server closes most of them, and they come
// again.
HostileLoad SlowHeads() {
  return {.name = fmt::format("HTTP: slow loris with {} connections", kSlowHeads),
          .begin =
              [](uint16_t port, Connections* all) {
                Open(port, kSlowHeads, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n", all);
              },
          .keep_up =
              [next = size_t{0}](uint16_t port, Connections* all) mutable {
                for (int i = 0; i < 20; ++i) {
                  std::unique_ptr<Connection>& slow = (*all)[next++ % all->size()];
                  if (slow->IsClosed()) slow = std::make_unique<Connection>(port);
                  slow->SendSome("X: y\r\n");
                }
              },
          .is_http = true};
}

HostileLoad LongHeads() {
  return {.name = "HTTP: heads of 100 KiB",
          .begin = [](uint16_t, Connections*) {},
          .keep_up =
              [head = "GET / HTTP/1.1\r\nX: " + std::string(100 << 10, 'x')](uint16_t port,
                                                                             Connections* all) {
                if (all->size() >= kSoupCooks) all->erase(all->begin(), all->begin() + 10);
                Open(port, 10, head, all);
              },
          .is_http = true};
}

// Connections that come and ask, and go without reading the answer.
HostileLoad ConnectionFlood() {
  return {.name = "HTTP: a flood of connections",
          .begin = [](uint16_t, Connections*) {},
          .keep_up =
              [](uint16_t port, Connections* all) {
                all->clear();
                Open(port, 50, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", all);
              },
          .is_http = true};
}

// The beginning of a TLS hello, which says that 512 bytes follow.
constexpr std::string_view kHalfHello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

HostileLoad HalfHellos() {
  return {
      .name = fmt::format("TLS: {} half hellos, a byte at a time", kHalfHellos),
      .begin = [](uint16_t port, Connections* all) { Open(port, kHalfHellos, kHalfHello, all); },
      .keep_up =
          [next = size_t{0}](uint16_t port, Connections* all) mutable {
            for (int i = 0; i < 20; ++i) {
              std::unique_ptr<Connection>& slow = (*all)[next++ % all->size()];
              if (slow->IsClosed()) slow = std::make_unique<Connection>(port);
              slow->SendSome("x");
            }
          },
      .is_tls = true};
}

HostileLoad GarbageAsTls(const std::shared_ptr<std::mt19937>& random) {
  return {.name = fmt::format("TLS: garbage from {}", kSoupCooks),
          .begin = [](uint16_t, Connections*) {},
          .keep_up =
              [random](uint16_t port, Connections* all) {
                if (all->size() >= kSoupCooks) all->erase(all->begin(), all->begin() + 10);
                Open(port, 10, std::string(kHalfHello) + Soup(random.get()), all);
              },
          .is_tls = true};
}

HostileLoad IdleGuests() {
  const auto guests = std::make_shared<TlsGuests>();
  return {.name = fmt::format("TLS: {} idle connections", kManyConnections),
          .begin =
              [guests](uint16_t port, Connections*) {
                while (guests->count() < kManyConnections) {
                  if (!guests->Welcome(port)) Fail("a guest over TLS got no answer");
                }
              },
          .keep_up = [guests](uint16_t, Connections*) {},
          .most_memory = kMostMemoryOfTls,
          .is_tls = true};
}

HostileLoad HandshakesWithoutEnd() {
  const auto guests = std::make_shared<TlsGuests>();
  return {.name = "TLS: one handshake after the other without end",
          .begin = [](uint16_t, Connections*) {},
          .keep_up =
              [guests](uint16_t port, Connections*) {
                for (const auto end = Clock::now() + kGreed; Clock::now() < end;) {
                  if (!guests->Welcome(port)) Fail("a guest over TLS got no answer");
                  guests->SendAway();
                }
              },
          .is_tls = true};
}

std::vector<HostileLoad> AllLoads() {
  const auto random = std::make_shared<std::mt19937>(7);
  return {
      {"none", [](uint16_t, Connections*) {}},
      {fmt::format("{} idle connections", kManyConnections),
       [](uint16_t port, Connections* all) {
         Open(port, kManyConnections, Resp({"PING"}), all);
         for (const auto& connection : *all) connection->Expect("+PONG\r\n");
       }},
      {fmt::format("{} half commands", kManyConnections),
       [](uint16_t port, Connections* all) {
         Open(port, kManyConnections, "*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$1000\r\nhalf a val",
              all);
       }},
      {fmt::format("{} clients declare 512 MB", kDeclaring),
       [](uint16_t port, Connections* all) {
         Open(port, kDeclaring, "*1048576\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", all);
       }},
      {"300 MB of replies unread",
       [](uint16_t port, Connections* all) {
         std::string requests;
         for (int i = 0; i < kLargeReplies; ++i) requests += Resp({"GET", "large"});
         all->push_back(std::make_unique<Connection>(port, 64 << 10));
         all->back()->Send(requests);
       }},
      {fmt::format("token soup from {}", kSoupCooks), [](uint16_t, Connections*) {},
       [random](uint16_t port, Connections* all) {
         if (all->size() >= kSoupCooks) all->erase(all->begin(), all->begin() + 10);
         Open(port, 10, Soup(random.get()), all);
         std::this_thread::sleep_for(std::chrono::milliseconds(2));
       }},
      {fmt::format("{} clients count {} keys", kCounters, kKeys),
       [](uint16_t port, Connections* all) {
         std::string requests;
         for (int i = 0; i < 1000; ++i) requests += Resp({"COUNT", "-", "+"});
         Open(port, kCounters, requests, all);
       }},
      GreedyClient("one pipeline of GETs without end",
                   Pipeline([](int i) -> std::vector<std::string> {
                     return {"GET", KeyOf(i * 7919 % kKeys)};
                   })),
      GreedyClient("one pipeline of SETs without end",
                   Pipeline([](int i) -> std::vector<std::string> {
                     return {"SET", KeyOf(i * 7919 % kKeys), "value"};
                   }),
                   kMostMemoryOfWrites),
      GreedyClient("RANGE over everything without end", Resp({"RANGE", "-", "+"})),
      SlowHeads(),
      LongHeads(),
      ConnectionFlood(),
      HalfHellos(),
      GarbageAsTls(random),
      IdleGuests(),
      HandshakesWithoutEnd(),
  };
}

void Fill(Connection* client) {
  constexpr int kTogether = 1000;
  for (int i = 0; i < kKeys; i += kTogether) {
    std::vector<std::string> arguments = {"MSET"};
    for (int j = i; j < i + kTogether; ++j) {
      arguments.push_back(KeyOf(j));
      arguments.push_back("value");
    }
    client->Send(Resp(arguments));
    client->Expect("+OK\r\n");
  }
  const std::string large(kLargeValue, 'x');
  client->Send(Resp({"SET", "large", large}));
  client->Expect("+OK\r\n");
  for (int i = 0; i < 2; ++i) {  // what reading one takes is no growth
    client->Send(Resp({"GET", "large"}));
    client->Expect(fmt::format("${}\r\n{}\r\n", kLargeValue, large));
  }
}

std::string ParentPath(const std::string& path) { return path.substr(0, path.rfind('/')); }

struct Waits {
  Histogram all;
  uint64_t longest = 0;  // nanoseconds
};

// Writes and reads in turns, a request a millisecond, until `stop`.
void BePolite(Connection* client, const std::atomic<bool>& stop, Waits* waits) {
  const std::string value(100, 'p');
  while (!stop.load()) {
    for (const bool write : {true, false}) {
      const auto begin = Clock::now();
      client->Send(write ? Resp({"SET", "polite", value}) : Resp({"GET", "polite"}));
      client->Expect(write ? "+OK\r\n" : fmt::format("$100\r\n{}\r\n", value));
      const auto wait = static_cast<uint64_t>((Clock::now() - begin) / std::chrono::nanoseconds(1));
      waits->all.Record(wait, 1);
      waits->longest = std::max(waits->longest, wait);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

std::vector<std::string> Run(const HostileLoad& load, const std::string& directory, bool* kept) {
  MakeEmptyDirectory(directory);
  const uint16_t port = FreePort();
  uint16_t http_port = FreePort();
  while (http_port == port) http_port = FreePort();
  std::vector<std::string> command = {
      ProgramDirectory() + "/server_main", fmt::format("--port={}", port),
      fmt::format("--http-port={}", http_port), "--dir=" + directory,
      fmt::format("--maxclients={}", kManyConnections + 100)};
  if (load.is_tls) {
    const CertificateFiles files = MakeCertificate(ParentPath(directory));
    command.insert(command.end(), {"--tls=optional", "--tls-cert-file=" + files.certificate,
                                   "--tls-key-file=" + files.key, "--tls-auth-clients=no"});
  }
  Child server(command, directory + ".log");
  for (int i = 0; i < 1000 && !AnswersPing(port); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Connection polite(port);
  Fill(&polite);

  Waits waits;
  std::atomic<bool> stop{false};
  std::thread thread([&] { BePolite(&polite, stop, &waits); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const int64_t before = server.ResidentBytes();
  int64_t most = before;
  Connections connections;
  const uint16_t attacked = load.is_http ? http_port : port;
  load.begin(attacked, &connections);
  const auto end = Clock::now() + std::chrono::duration<double>(absl::GetFlag(FLAGS_seconds));
  auto next_look = Clock::now();
  while (Clock::now() < end) {
    load.keep_up(attacked, &connections);
    if (Clock::now() >= next_look) {
      most = std::max(most, server.ResidentBytes());
      next_look = Clock::now() + std::chrono::milliseconds(50);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop.store(true);
  thread.join();
  const double p99 = waits.all.Percentile(0.99) / 1e9;
  *kept = *kept && most - before <= load.most_memory && p99 < load.most_wait;
  return {load.name, FormatBytes(static_cast<double>(most - before)),
          fmt::format("{:.2f} ms", waits.all.Percentile(0.5) / 1e6),
          fmt::format("{:.2f} ms", p99 * 1e3),
          fmt::format("{:.2f} ms", static_cast<double>(waits.longest) / 1e6)};
}

void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) {
  using namespace varve::bench;
  HelpList loads{"Loads (--load takes a part of the name):", {}};
  for (const HostileLoad& load : AllLoads()) {
    loads.lines.emplace_back(load.name,
                             fmt::format("memory grows by at most {}",
                                         FormatBytes(static_cast<double>(load.most_memory))));
  }
  HelpIfAsked(argc, argv, "server/hostile_clients.cc",
              "runs clients that mean no good, and measures the server's memory and a polite "
              "client's waits.",
              {loads}, /*has_google_benchmark=*/false);
  absl::ParseCommandLine(argc, argv);
  AllowManyFiles();
  const std::string directory =
      ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "hostile_clients_data");
  std::vector<std::vector<std::string>> rows = {
      {"load", "memory grows by", "polite p50", "p99", "longest"}};
  bool kept = true;
  for (const HostileLoad& load : AllLoads()) {
    if (load.name.find(absl::GetFlag(FLAGS_load)) == std::string::npos) continue;
    rows.push_back(Run(load, directory + "/store", &kept));
  }
  fmt::print("{}\n{}", MachineKind(), MarkdownTable(rows));
  return kept ? 0 : 1;
}
