// Several writers on a server at once, pipelined, and a reader beside them; and what they find when
// it is back after a crash.
//
// The reader looks at the writers' first keys: what it is shown must survive like what is
// acknowledged, in all modes for a crash of the process, and with --sync=always for a loss of
// power. Thread-compatible; Start makes threads of its own, which Join ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "unit-tests/prove/writer.h"

namespace varve::prove {

// What one crash, or many, came to.
struct Figures {
  uint64_t cycles = 0;
  uint64_t sent = 0;
  uint64_t acknowledged = 0;  // promised to survive and looked for
  // Acknowledged, and not promised to survive this crash (everysec and no, power).
  uint64_t released = 0;
  uint64_t taken = 0;    // of them, those that were gone
  uint64_t unasked = 0;  // not acknowledged, and there all the same
  uint64_t shown = 0;    // values shown to readers, and looked for
  uint64_t lost = 0;     // keys
  uint64_t torn = 0;
  std::chrono::milliseconds longest_start{0};
  // How long before the crash the oldest of `taken` was acknowledged.
  std::chrono::milliseconds oldest_taken{0};
  // All else that must not be, and in words what is lost or torn.
  std::vector<std::string> complaints;

  void Add(const Figures& other);
};

// What a crash may take of what was acknowledged.
struct Grace {
  bool any = false;  // false: nothing
  // What was acknowledged longer ago is there; 0: no promise.
  std::chrono::milliseconds age{0};
  std::chrono::steady_clock::time_point crash{};  // counted from here
  // Power only, with `any` false: when all power was gone. The file system's shutdown lets a sync
  // succeed that runs at that very moment, though it leaves the extents of that sync unwritten: a
  // bare loop of pwrite and fdatasync into a preallocated file loses its last write in 3 of 200
  // cuts (Linux 6.18). So what was sent before this moment and acknowledged after `crash` may be
  // gone; what was sent later and acknowledged all the same must not.
  std::optional<std::chrono::steady_clock::time_point> settled = std::nullopt;
};

class Fleet {
 public:
  Fleet(size_t writers, uint64_t seed);
  ~Fleet() { Join(); }

  // Connects them and has them write until the connection is lost, or there was an error reply, or
  // Stop. `depth`: requests each sends ahead. `may_go_back`: with everysec and no, reads show what
  // is durable once the log has failed, which is less than they had shown.
  [[nodiscard]] absl::Status Start(uint16_t port, size_t depth, bool may_go_back = false);
  // Lets them collect what is under way, and end.
  void Stop() { stop_ = true; }
  void Join();
  // What the reader is shown from here on does not have to survive.
  void StopWatching() { watches_ = false; }

  // After Join: looks at what the server has now. Then goes on from there. The figures are those of
  // this crash.
  Figures Check(uint16_t port, const Grace& grace = {});

  // Of all writers, after Check: what is there, and the keys that can be.
  Pairs Expected() const;
  std::vector<std::string> AllKeys() const;

 private:
  void Write(Writer* writer, std::unique_ptr<Client> client, size_t depth);
  void Watch(std::unique_ptr<Client> client, bool may_go_back);
  absl::Status CheckAgainst(Client* client, const Grace& grace, Figures* figures);
  void CheckRefusals(Figures* figures) const;
  // How many of a writer's requests have to be there.
  uint64_t MustSurvive(size_t writer, const Grace& grace) const;
  void CountTaken(const Writer& writer, uint64_t survived, const Grace& grace,
                  Figures* figures) const;
  void Complain(std::string complaint);

  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> watches_{true};
  std::vector<uint64_t> shown_;  // by writer: highest count that the reader was shown
  uint64_t shows_ = 0;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
};

}  // namespace varve::prove
