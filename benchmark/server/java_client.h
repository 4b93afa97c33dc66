// The Java client is HBase's own client in a program of its own (HbaseLoad.java), which the
// benchmark compiles against the jars of a cluster, starts, and gives work to over a socket.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "benchmark/process.h"
#include "benchmark/server/load.h"

namespace varve::bench {

class JavaClient {
 public:
  struct Settings {
    std::string quorum;     // host:port of ZooKeeper
    std::string jars;       // the folder of HBase's jars
    std::string table;      // is made and filled
    std::string directory;  // for classes and the log
    std::string cores;      // that it runs on, as taskset takes them; empty: all
    uint64_t keys = 0;
    size_t value_size = 100;
  };

  // Returns why there can be none; empty if there can.
  static std::string WhyNot(const Settings& settings);

  // Returns once the table is filled. Ends the program where that fails, as the other functions do.
  explicit JavaClient(const Settings& settings);
  ~JavaClient();
  JavaClient(const JavaClient&) = delete;
  JavaClient& operator=(const JavaClient&) = delete;

  // Runs a load by as many threads as it has connections. Requires: it is one of SET, GET, MGET and
  // RANGE, and no pipeline of the last two. A pipeline of SETs is one put of several keys, and a
  // pipeline of GETs one get of several, as an MGET is.
  LoadResult Run(const Load& load);
  // Removes the tables whose names begin so.
  void Drop(const std::string& prefix);

 private:
  // Sends a line and returns the line that comes back.
  std::string Ask(const std::string& line);

  std::unique_ptr<Child> process_;
  int socket_ = -1;
};

}  // namespace varve::bench
