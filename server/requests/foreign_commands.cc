#include "server/requests/foreign_commands.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"

namespace varve {
namespace {

constexpr std::string_view kCluster = "belongs to clusters";
constexpr std::string_view kDebugging = "looks into Redis' own memory";
constexpr std::string_view kHashes = "works on hashes";
constexpr std::string_view kHyperLogLogs = "works on HyperLogLogs";
constexpr std::string_view kLists = "works on lists";
constexpr std::string_view kModules = "belongs to modules";
constexpr std::string_view kPositions = "works on geographic positions";
constexpr std::string_view kRedisFormat = "moves values in the form of Redis' files";
constexpr std::string_view kReplication = "belongs to replication";
constexpr std::string_view kScripts = "runs scripts";
constexpr std::string_view kSets = "works on sets";
constexpr std::string_view kSortedSets = "works on sorted sets";
constexpr std::string_view kSorting = "sorts lists and sets";
constexpr std::string_view kStreams = "works on streams";

struct ForeignCommand {
  std::string_view name;
  std::string_view does;
};

// In alphabetic order.
constexpr ForeignCommand kForeignCommands[] = {
    {"asking", kCluster},
    {"blmove", kLists},
    {"blmpop", kLists},
    {"blpop", kLists},
    {"brpop", kLists},
    {"brpoplpush", kLists},
    {"bzmpop", kSortedSets},
    {"bzpopmax", kSortedSets},
    {"bzpopmin", kSortedSets},
    {"cluster", kCluster},
    {"debug", kDebugging},
    {"eval", kScripts},
    {"eval_ro", kScripts},
    {"evalsha", kScripts},
    {"evalsha_ro", kScripts},
    {"fcall", kScripts},
    {"fcall_ro", kScripts},
    {"geoadd", kPositions},
    {"geodist", kPositions},
    {"geohash", kPositions},
    {"geopos", kPositions},
    {"georadius", kPositions},
    {"georadius_ro", kPositions},
    {"georadiusbymember", kPositions},
    {"georadiusbymember_ro", kPositions},
    {"geosearch", kPositions},
    {"geosearchstore", kPositions},
    {"hdel", kHashes},
    {"hexists", kHashes},
    {"hget", kHashes},
    {"hgetall", kHashes},
    {"hincrby", kHashes},
    {"hincrbyfloat", kHashes},
    {"hkeys", kHashes},
    {"hlen", kHashes},
    {"hmget", kHashes},
    {"hmset", kHashes},
    {"hrandfield", kHashes},
    {"hscan", kHashes},
    {"hset", kHashes},
    {"hsetnx", kHashes},
    {"hstrlen", kHashes},
    {"hvals", kHashes},
    {"lindex", kLists},
    {"linsert", kLists},
    {"llen", kLists},
    {"lmove", kLists},
    {"lmpop", kLists},
    {"lpop", kLists},
    {"lpos", kLists},
    {"lpush", kLists},
    {"lpushx", kLists},
    {"lrange", kLists},
    {"lrem", kLists},
    {"lset", kLists},
    {"ltrim", kLists},
    {"migrate", kRedisFormat},
    {"module", kModules},
    {"pfadd", kHyperLogLogs},
    {"pfcount", kHyperLogLogs},
    {"pfdebug", kHyperLogLogs},
    {"pfmerge", kHyperLogLogs},
    {"pfselftest", kHyperLogLogs},
    {"psync", kReplication},
    {"readonly", kCluster},
    {"readwrite", kCluster},
    {"replconf", kReplication},
    {"restore-asking", kRedisFormat},
    {"rpop", kLists},
    {"rpoplpush", kLists},
    {"rpush", kLists},
    {"rpushx", kLists},
    {"sadd", kSets},
    {"scard", kSets},
    {"script", kScripts},
    {"sdiff", kSets},
    {"sdiffstore", kSets},
    {"sinter", kSets},
    {"sintercard", kSets},
    {"sinterstore", kSets},
    {"sismember", kSets},
    {"smembers", kSets},
    {"smismember", kSets},
    {"smove", kSets},
    {"sort", kSorting},
    {"sort_ro", kSorting},
    {"spop", kSets},
    {"srandmember", kSets},
    {"srem", kSets},
    {"sscan", kSets},
    {"sunion", kSets},
    {"sunionstore", kSets},
    {"sync", kReplication},
    {"xack", kStreams},
    {"xadd", kStreams},
    {"xautoclaim", kStreams},
    {"xclaim", kStreams},
    {"xdel", kStreams},
    {"xgroup", kStreams},
    {"xpending", kStreams},
    {"xreadgroup", kStreams},
    {"xsetid", kStreams},
    {"xtrim", kStreams},
    {"zadd", kSortedSets},
    {"zcard", kSortedSets},
    {"zcount", kSortedSets},
    {"zdiff", kSortedSets},
    {"zdiffstore", kSortedSets},
    {"zincrby", kSortedSets},
    {"zinter", kSortedSets},
    {"zintercard", kSortedSets},
    {"zinterstore", kSortedSets},
    {"zlexcount", kSortedSets},
    {"zmpop", kSortedSets},
    {"zmscore", kSortedSets},
    {"zpopmax", kSortedSets},
    {"zpopmin", kSortedSets},
    {"zrandmember", kSortedSets},
    {"zrange", kSortedSets},
    {"zrangebylex", kSortedSets},
    {"zrangebyscore", kSortedSets},
    {"zrangestore", kSortedSets},
    {"zrank", kSortedSets},
    {"zrem", kSortedSets},
    {"zremrangebylex", kSortedSets},
    {"zremrangebyrank", kSortedSets},
    {"zremrangebyscore", kSortedSets},
    {"zrevrange", kSortedSets},
    {"zrevrangebylex", kSortedSets},
    {"zrevrangebyscore", kSortedSets},
    {"zrevrank", kSortedSets},
    {"zscan", kSortedSets},
    {"zscore", kSortedSets},
    {"zunion", kSortedSets},
    {"zunionstore", kSortedSets},
};

constexpr size_t kLongestName = 20;

}  // namespace

std::string ForeignCommandError(std::string_view name) {
  if (name.size() > kLongestName) return {};
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  const auto* const found = std::lower_bound(
      std::begin(kForeignCommands), std::end(kForeignCommands), std::string_view(lower),
      [](const ForeignCommand& command, std::string_view wanted) { return command.name < wanted; });
  if (found == std::end(kForeignCommands) || found->name != lower) return {};
  for (char& c : lower) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  return fmt::format("ERR '{}' {}, which Varve does not have: it keeps strings in key order", lower,
                     found->does);
}

}  // namespace varve
