// The HTTP listener serves small pages to people and monitors, on a socket and a thread of its own
// (varve-http), so that it answers while every I/O thread is busy or the disk hangs. What the pages
// say is up to a handler, which the thread calls. Where TLS is in use, the first byte of a
// connection tells it from plain text, and the same thread does the handshakes.
//
// A connection has 10 s for each head of a request, which it is told if it has sent a part of it,
// 10 s for taking a reply, and 60 s between requests. There are at most 64 connections; one more
// takes the place of the one that has gone longest without a complete head. At most 32 of them are
// streams (server/http/http_stream.h).
//
// Thread-safety: one thread calls Start() and Stop(); the handlers run on the listener's thread.
// Invariants: connections_ has at most kMaxConnections elements between two rounds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/http/http_parser.h"
#include "server/http/http_stream.h"
#include "server/tls/tls_connection.h"
#include "server/tls/tls_contexts.h"

namespace varve {

// Lets a page load nothing and run nothing.
inline constexpr std::string_view kClosedPolicy =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct HttpReply {
  int status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string_view more_headers;            // whole lines, each with its end
  std::string_view policy = kClosedPolicy;  // Content-Security-Policy
  // It follows the head, in the place of the body. Null: there is a body.
  std::shared_ptr<HttpStream> stream = nullptr;
};

struct HttpPeer {
  std::string address;  // "10.0.0.5:40000", "[::1]:40000"
  bool is_loopback = false;
  // By which the peer's certificate calls a user, see TlsConnection::UserNames().
  std::vector<std::string> user_names;
};

class HttpListener {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr std::chrono::seconds kHeadTime{10};
  static constexpr std::chrono::seconds kReplyTime{10};
  static constexpr std::chrono::seconds kIdleTime{60};
  static constexpr size_t kMaxStreams = 32;                // of the connections
  static constexpr std::chrono::seconds kFarewellTime{2};  // of a refused request

  struct Handlers {
    std::function<HttpReply(const HttpRequest& request, const HttpPeer& peer)> answer;
    std::function<void()> tick;  // about once a second
    // Returns how long the request has to wait before it is answered; null: none waits.
    std::function<std::chrono::milliseconds(const HttpRequest& request, const HttpPeer& peer)>
        delay;
  };

  // `tls`: null where TLS is not spoken. It outlives the listener.
  explicit HttpListener(TlsContexts* tls = nullptr) : tls_(tls) {}
  ~HttpListener() { Stop(); }
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // Listens on the port of the IP address (0: any free one) and starts the thread. `passed`: a TCP
  // socket that listens already and takes the place of the address, and which the listener owns
  // from now on; -1: there is none. FailedPrecondition: the address can't be had.
  // ResourceExhausted: the system gives no descriptors or no thread.
  [[nodiscard]] absl::Status Start(const std::string& address, uint16_t port, Handlers handlers,
                                   int passed = -1);
  // Has the thread look at its streams soon. Any thread may call it until Stop() is called.
  void Wake() const;
  // Closes all connections and returns when the thread has ended. Does nothing without a thread.
  void Stop();

  // 0: it does not listen.
  uint16_t port() const { return port_; }
  // Returns where it listens: "127.0.0.1:7778", "[::1]:7778".
  const std::string& place() const { return place_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Stage : uint8_t { kArriving, kHandshake, kOpen };
  struct Connection {
    int descriptor = -1;
    HttpPeer peer;
    std::string input;
    std::string output;
    size_t sent = 0;           // of the output
    Time last_head;            // when the last head was complete; before the first, when it came
    Time deadline;             // for what the connection waits for
    Time answer_at{};          // when the request at the front of the input is to be answered
    bool has_waited = false;   // that request has
    bool closes = false;       // once the output is sent
    bool was_refused = false;  // what still comes is read and dropped, so that the reply arrives
    uint32_t watched = 0;      // the events that epoll tells of
    Stage stage = Stage::kOpen;
    std::unique_ptr<TlsConnection> tls;  // null: plain text
    std::shared_ptr<HttpStream> stream;  // null: each reply has an end
  };
  using Connections = std::list<Connection>;

  absl::Status Open(const std::string& address, uint16_t port);
  // Notes where the socket listens; returns whether that could be found out.
  bool NotePlace();
  absl::Status OpenPolling();
  void CloseDescriptors();
  void Run();
  // Waits for events until `until` at most, and serves them.
  void Round(Time until);
  void Accept(Time now);
  void Welcome(int descriptor, HttpPeer peer, Time now);
  // Closes the connection that has gone longest without a complete head.
  void CloseStalest();
  // The functions that serve a connection return whether it stays.
  bool Serve(Connection* connection, uint32_t events, Time now);
  // Decides by the first byte whether the connection speaks TLS.
  bool Arrive(Connection* connection, Time now);
  bool ShakeHands(Connection* connection, Time now);
  bool Receive(Connection* connection, Time now);
  // Receives once; `*bytes` is empty where nothing came.
  static bool ReceiveBytes(Connection* connection, std::string* bytes);
  // Answers the request at the front of the input if it is complete; one that follows takes its
  // turn in a later round, so that no connection keeps the others waiting.
  bool AnswerRequest(Connection* connection, Time now);
  // Answers requests whose time has come.
  void AnswerWaiting(Time now);
  // Returns when the thread has something to do at the latest, and at `until` anyway.
  Time NextDeadline(Time until) const;
  bool Send(Connection* connection, Time now);
  // Sends the pieces of streams whose clients have taken what came before.
  void SendPieces(Time now);
  bool SendPiece(Connection* connection, Time now);
  // Reads and drops what the client of a stream sends.
  static bool Drain(Connection* connection);
  size_t CountStreams() const;
  // Sends what the socket takes of the output.
  static bool SendBytes(Connection* connection);
  bool Watch(Connection* connection, uint32_t events);
  // Makes a reply the output, behind which the connection closes.
  static void Refuse(Connection* connection, int status, std::string_view why);
  void Answer(const HttpRequest& request, Connection* connection);
  void CloseLate(Time now);
  // Returns whether a part of a head came, and nothing but the rest of it is waited for.
  static bool HasBegunHead(const Connection& connection);
  // Says that the head took too long; returns whether the connection stays for the reply.
  bool RefuseLate(Connection* connection, Time now);
  void Close(Connections::iterator connection);

  TlsContexts* const tls_;
  Handlers handlers_;
  uint16_t port_ = 0;
  std::string place_;
  int socket_ = -1;
  int epoll_ = -1;
  int wake_ = -1;  // readable when the thread is to end
  std::atomic<bool> stop_requested_{false};
  bool stopping_ = false;
  bool accepts_ = true;  // false: the process is out of descriptors
  Connections connections_;
  std::thread thread_;
};

// Writes the reply as it is sent.
std::string HttpReplyText(const HttpReply& reply, bool head_only, bool keep_alive);

}  // namespace varve
