// The options by which a client reaches its server and deals with a lost connection. All kinds of
// clients take them (client/client.h, client/pipeline.h, client/async_client.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "type/reply.h"

namespace varve {

// How a client encrypts its connection, and what it demands of the server's certificate.
struct ClientTlsOptions {
  bool enabled = false;

  // The authorities that the client trusts: a file of certificates (PEM), a directory of such files
  // (as `openssl rehash` leaves it), or both. Both empty: those that the system trusts.
  std::string ca_file;
  std::string ca_directory;

  // The client's own certificate (PEM, with the chain behind it) and its key, for servers that ask
  // for one. A certificate without a key file has its key in the same file.
  std::string certificate_file;
  std::string key_file;

  // The name that the client sends to the server (SNI), and for which the server's certificate must
  // be made out. Empty: the host, a name or an address; "localhost" over a Unix socket.
  std::string server_name;

  // The client takes any certificate, so that a stranger who answers can read and change all.
  bool insecure = false;
};

struct ClientOptions {
  std::string host = "127.0.0.1";  // a name or an address
  uint16_t port = 7777;
  std::string unix_socket;  // a path; if set, it takes the place of host and port

  ClientTlsOptions tls;

  std::string user;      // with a password; empty: the default user
  std::string password;  // empty: no AUTH is sent
  std::string name;      // shown by the server's CLIENT INFO; empty: none
  int protocol = 2;      // 3: RESP3 (HELLO 3), which push messages need

  // Commands work in this database, until a SELECT, NAMESPACE USE or RESET that is sent says
  // otherwise; each new connection begins there.
  int database = 0;
  std::string namespace_name;  // a named namespace; if set, it takes the place of the database

  // One attempt to connect, with its handshake; 0: no bound.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds timeout{0};  // each wait for the server; 0: no bound

  // A lost connection is made again: attempts go on for so long, with pauses that double from
  // `backoff_first` to `backoff_last` and are shortened at random by up to a half. 0: lost is lost.
  std::chrono::milliseconds reconnect_for{10000};
  std::chrono::milliseconds backoff_first{20};
  std::chrono::milliseconds backoff_last{2000};

  // Takes RESP3 push messages (published messages, confirmations of subscriptions), and the lines
  // that follow a MONITOR (as Type::kSimple). Called by the thread that reads the connection, while
  // it reads: it must not use the client. Subscriptions and MONITOR are made again on a new
  // connection.
  std::function<void(const Reply& message)> on_push;
};

// The treatment of a request whose connection is lost after it was sent and before its reply came.
// Requests that had not been sent completely are always sent on the new connection, since the
// server cannot have executed them.
enum class WhenLost {
  kByCommand,  // kResend for commands that only read, kReport for all others
  kReport,     // reported as unknown: it may have taken effect
  kResend,     // sent again: for requests that may take effect twice, such as a plain SET
};

}  // namespace varve
