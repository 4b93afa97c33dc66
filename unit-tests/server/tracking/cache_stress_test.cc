// Caches that clients keep by CLIENT TRACKING, while others write in every way: once all is quiet,
// no cache holds a value that differs from the server's.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::Ask;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

constexpr int kKeys = 48;
constexpr const char* kMarker = "s:marker";

std::string KeyOf(uint64_t number) { return "s:" + std::to_string(10 + number % kKeys); }

// A connection that reads replies and pushes one after the other, as a library with a cache does.
class Cache {
 public:
  Cache(uint16_t port, const Words& mode, unsigned seed) : connection_(port), random_(seed) {
    connection_.Send(Resp({"HELLO", "3"}) + Resp(mode));
    (void)Read();
    EXPECT_EQ(Read(), "OK");
    optin_ = mode.back() == "OPTIN";
  }

  void RunUntil(const std::atomic<bool>& stop) {
    while (!stop.load()) Step();
  }
  // Has the marker written, and reads until its invalidation has come, behind all earlier ones.
  void AwaitMarker(Client& admin) {
    Fetch(kMarker);
    Ask(admin, {"SET", kMarker, "quiet"});
    while (values_.contains(kMarker)) {
      connection_.Send(Resp({"PING"}));
      if (Read() != "PONG") return;
    }
  }
  const std::map<std::string, std::string>& values() const { return values_; }
  size_t hits() const { return hits_; }

 private:
  void Step() {
    const uint64_t kind = random_() % 8;
    if (kind == 0) return FetchInTransaction(KeyOf(random_()), KeyOf(random_()));
    if (kind == 1) return FetchMany();
    const std::string key = KeyOf(random_());
    values_.contains(key) ? static_cast<void>(++hits_) : Fetch(key);
  }
  void Begin() {
    if (optin_) connection_.Send(Resp({"CLIENT", "CACHING", "YES"}));
  }
  void End() {
    if (optin_) {
      EXPECT_EQ(Read(), "OK");
    }
  }
  void Fetch(const std::string& key) {
    Begin();
    connection_.Send(Resp({"GET", key}));
    End();
    values_[key] = Read();
  }
  void FetchInTransaction(const std::string& one, const std::string& other) {
    Begin();
    connection_.Send(Resp({"MULTI"}) + Resp({"GET", one}) + Resp({"GET", other}) + Resp({"EXEC"}));
    End();
    for (int i = 0; i < 3; ++i) (void)Read();
    elements_.clear();
    (void)Read();
    if (elements_.size() != 2) return;
    values_[one] = elements_[0];
    values_[other] = elements_[1];
  }
  void FetchMany() {
    Words request{"MGET"};
    for (int i = 0; i < kKeys; ++i) request.push_back(KeyOf(static_cast<uint64_t>(i)));
    Begin();
    connection_.Send(Resp(request));
    End();
    elements_.clear();
    (void)Read();
    if (elements_.size() != static_cast<size_t>(kKeys)) return;
    for (int i = 0; i < kKeys; ++i)
      values_[request[static_cast<size_t>(i) + 1]] = elements_[static_cast<size_t>(i)];
  }

  std::string Line() {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = connection_.Receive(1);
      if (byte.empty()) return "-lost";
      line += byte;
    }
    return line.substr(0, line.size() - 2);
  }
  // The next reply; elements of an array go to elements_. Obeys pushes before it.
  std::string Read() {
    for (;;) {
      const std::string line = Line();
      const std::string rest = line.substr(1);
      switch (line[0]) {
        case '>':
          Obey(std::stoul(rest));
          continue;
        case '$': {
          const std::string text = connection_.Receive(std::stoul(rest) + 2);
          return text.substr(0, text.size() - 2);
        }
        case '*':
        case '%':
          for (size_t i = 0; i < std::stoul(rest) * (line[0] == '%' ? 2 : 1); ++i)
            elements_.push_back(Read());
          return line;
        case '_':
          return "(nil)";
        default:
          return rest;
      }
    }
  }
  void Obey(size_t parts) {
    EXPECT_EQ(parts, 2u);
    EXPECT_EQ(Read(), "invalidate");
    const Words outer = std::exchange(elements_, {});
    if (Read() == "(nil)") values_.clear();
    for (const std::string& key : elements_) values_.erase(key);
    elements_ = outer;
  }

  RawConnection connection_;
  std::mt19937_64 random_;
  bool optin_ = false;
  std::map<std::string, std::string> values_;
  Words elements_;
  size_t hits_ = 0;
};

// One write of some kind.
void WriteSomething(Client& client, std::mt19937_64& random) {
  const std::string key = KeyOf(random()), other = KeyOf(random());
  const std::string value = std::to_string(random() % 100000);
  switch (random() % 14) {
    case 0:
      Ask(client, {"SET", key, value, "PX", std::to_string(1 + random() % 8)});
      break;
    case 1:
      Ask(client, {"DEL", key});
      break;
    case 2:
      Ask(client, {"INCRBY", key, "3"});
      break;
    case 3:
      Ask(client, {"DELRANGE", "[" + std::min(key, other), "[" + std::max(key, other)});
      break;
    case 4:
      if (random() % 8 == 0) Ask(client, {"FLUSHDB"});
      break;
    case 5:
      Ask(client, {"MSET", key, value, other, value});
      break;
    case 6:
      for (const Words& request :
           std::vector<Words>{{"MULTI"}, {"SET", key, value}, {"APPEND", other, "1"}, {"EXEC"}})
        Ask(client, request);
      break;
    case 7:
      Ask(client, {"RENAME", key, other});
      break;
    case 8:
      Ask(client, {"PEXPIRE", key, std::to_string(1 + random() % 8)});
      break;
    case 9:
      Ask(client, {"SET", "s:large", std::string(3000, 'x')});
      break;
    default:
      Ask(client, {"SET", key, value});
  }
}

TEST(CacheStressTest, NoCacheHoldsAValueThatTheServerDoesNotHave) {
  ServerOptions options;
  options.io_threads = 2;
  options.threads = 2;
  EngineOptions engine = TestServer::SmallEngine();
  engine.write_buffer_size = 64u << 10;
  TestServer server(options, engine);
  const std::unique_ptr<Client> admin = server.Connect();
  std::vector<std::unique_ptr<Cache>> caches;
  const std::vector<Words> modes = {{"CLIENT", "TRACKING", "ON"},
                                    {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "s:"},
                                    {"CLIENT", "TRACKING", "ON", "OPTIN"}};
  for (size_t i = 0; i < modes.size(); ++i)
    caches.push_back(std::make_unique<Cache>(server.port(), modes[i], static_cast<unsigned>(i)));
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers, writers;
  for (const std::unique_ptr<Cache>& cache : caches)
    readers.emplace_back([&] { cache->RunUntil(stop); });
  constexpr int kWriters = 3, kWrites = 1200;
  for (unsigned i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      const std::unique_ptr<Client> client = server.Connect();
      std::mt19937_64 random(100 + i);
      for (int n = 0; n < kWrites; ++n) WriteSomething(*client, random);
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  // Nothing changes by itself any more.
  for (int i = 0; i < kKeys; ++i) Ask(*admin, {"PERSIST", KeyOf(static_cast<uint64_t>(i))});
  Ask(*admin, {"DBSIZE"});
  for (const std::unique_ptr<Cache>& cache : caches) {
    cache->AwaitMarker(*admin);
    for (const auto& [key, value] : cache->values()) {
      const std::string now = Ask(*admin, {"GET", key});
      EXPECT_EQ(value, now == "nil" ? "(nil)" : now) << key;
    }
  }
}

}  // namespace
}  // namespace varve
