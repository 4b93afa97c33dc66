// RegionLocator finds the region of a row. It keeps what it found, and looks what it does not know
// up in HBase's table of regions, hbase:meta, by a scan against the order of its rows: the row of a
// region begins with the name of its table and its first row. One scan brings several regions.
//
// Thread-safety: The thread that runs the io_context alone uses an object.
// Invariants: A table has one lookup under way at a time; who needs a region of it meanwhile waits
// for that one. Lookups go by rounds: each region that somebody waits for is looked up once in a
// round, and the next round begins after a pause, so that a region that is open nowhere holds up no
// lookup of another one, however many wait for it. Whoever waits is answered by the first lookup
// that ends after his deadline, if none answers him before.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/cluster_registry.h"
#include "db/hbase_rpc/region_cache.h"
#include "db/hbase_rpc/retry_pace.h"
#include "db/hbase_rpc/server_pool.h"

namespace varve {

// Which region of a table: that of the row, or that of the rows just before it (an empty row stands
// for the end of the table).
struct RegionQuery {
  std::string table;
  std::string row;
  bool is_before = false;
};

class RegionLocator {
 public:
  using Time = ClientContext::Time;
  // NotFound: there is no such table. Unavailable: the region was not found by the deadline.
  using Done = std::function<void(absl::StatusOr<RegionPtr> region)>;

  RegionLocator(ClientContext& context, ServerPool& servers, ClusterRegistry& registry)
      : context_(context), servers_(servers), registry_(registry) {}

  // The region as far as it is known; null where it is not, or where it was open nowhere.
  RegionPtr FindKnown(std::string_view table, std::string_view row) const {
    return IfOpen(FindTold(table, row));
  }
  // The region as hbase:meta told of it last, without a server if it was open nowhere; null where
  // nothing is known of it.
  RegionPtr FindTold(std::string_view table, std::string_view row) const {
    return cache_.Find(table, row);
  }
  // Finds the region. `done` may be called at once.
  void Find(RegionQuery query, Time deadline, Done done);
  // Finds a region that holds any of the rows. For those who need all of them, and make use of each
  // as soon as it is known.
  // Requires: there are rows.
  void FindAny(const std::string& table, std::vector<std::string> rows, Time deadline, Done done);
  // The region is not, or no more, where it was thought to be.
  void Forget(std::string_view table, const RegionPtr& region) { cache_.Remove(table, region); }

 private:
  struct Waiter {
    // He wants the region of any of the rows, or, with is_before, that before the only one.
    std::vector<std::string> rows;
    bool is_before;
    Time deadline;
    Done done;
  };
  struct Lookups {
    std::vector<Waiter> waiting;
    RetryPace pace;
    bool is_under_way = false;
    // The regions that answers of this round have told of, open or not, and the rows that were
    // looked up in it.
    RegionCache told;
    std::set<std::string, std::less<>> asked;
  };

  static RegionPtr IfOpen(RegionPtr found) {
    return found != nullptr && !found->server.empty() ? found : nullptr;
  }
  RegionPtr AnswerTo(const std::string& table, const Waiter& waiter) const;
  void Wait(const std::string& table, Waiter waiter);
  // Returns whether hbase:meta has said in this round where the region is, or that it is nowhere.
  static bool IsTold(const Lookups& lookups, std::string_view table, std::string_view row,
                     bool is_before);
  // Returns what is to be looked up next; nullopt where the round is over.
  static std::optional<RegionQuery> NextOf(const std::string& table, const Lookups& lookups);
  void LookUp(const std::string& table);
  void ScanMeta(const std::string& table, const std::string& server);
  void TakeAnswer(const RegionQuery& query, const RpcResult& result);
  // Takes the rows of hbase:meta in, and nothing of a row that is damaged.
  bool TakeMeta(const RegionQuery& query, std::string_view message, std::string_view cells,
                size_t* regions);
  // Answers those whose regions are known now or whose time is up, and looks on for the others: at
  // once if the last lookup has answered anybody, or has told where its region is and the round is
  // not over yet.
  void GoOn(const std::string& table, const absl::Status& last, bool has_told);
  void FailAll(const std::string& table, const absl::Status& why);

  ClientContext& context_;
  ServerPool& servers_;
  ClusterRegistry& registry_;
  RegionCache cache_;  // of closed regions, too
  std::map<std::string, Lookups, std::less<>> lookups_;
};

}  // namespace varve
