// How values of an RDB that are no strings are passed over: their encodings, by type number.
#include <string_view>

#include "fmt/format.h"
#include "util/base/status.h"
#include "util/redis_format/rdb_reader.h"

namespace varve {
namespace {

// What follows the key, in terms of strings and numbers.
enum class Shape {
  kUnknown,
  kOneString,      // a packed form of the whole
  kStrings,        // count, strings
  kPairs,          // count, twice as many strings
  kTextScores,     // count, of each a string and a score as text
  kBinaryScores,   // count, of each a string and 8 bytes
  kTaggedStrings,  // count, of each a length and a string
  kTaggedPairs,    // count, of each a length and two strings
  kTimedPairs,     // count, of each two strings and 8 bytes
  kStream,
  kModule,
};

struct ValueType {
  std::string_view name;
  Shape shape = Shape::kUnknown;
  uint64_t skipped = 0;  // bytes in front
};

constexpr uint8_t kTimedHash = 22;

ValueType TypeOf(uint8_t type) {
  switch (type) {
    case 1:
      return {"list", Shape::kStrings};
    case 2:
      return {"set", Shape::kStrings};
    case 3:
      return {"sorted set", Shape::kTextScores};
    case 4:
      return {"hash", Shape::kPairs};
    case 5:
      return {"sorted set", Shape::kBinaryScores};
    case 7:
      return {"module type", Shape::kModule};
    case 9:   // zipmap
    case 13:  // ziplist
    case 16:  // listpack
      return {"hash", Shape::kOneString};
    case 10:
      return {"list", Shape::kOneString};
    case 11:  // intset
    case 20:  // listpack
      return {"set", Shape::kOneString};
    case 12:  // ziplist
    case 17:  // listpack
      return {"sorted set", Shape::kOneString};
    case 14:
      return {"list", Shape::kStrings};
    case 18:
      return {"list", Shape::kTaggedStrings};
    case 15:
    case 19:
    case 21:
    case 26:
    case 27:
      return {"stream", Shape::kStream};
    // A hash whose fields expire: the length is the time; this and the next were written by
    // candidates of Redis 7.4, and this, in another form, by Valkey.
    case kTimedHash:
      return {"hash", Shape::kTaggedPairs};
    case 23:  // listpack
      return {"hash", Shape::kOneString};
    case 24:  // since 7.4 the earliest time of all stands in front
      return {"hash", Shape::kTaggedPairs, 8};
    case 25:  // listpack
      return {"hash", Shape::kOneString, 8};
    default:
      return {};
  }
}

constexpr uint8_t kStreamWithCounters = 19;  // and later
constexpr uint8_t kStreamWithActiveTime = 21;
constexpr uint8_t kStreamWithProducers = 26;
constexpr uint8_t kStreamWithRefusals = 27;
constexpr int kValkeyDumpVersion = 80;

}  // namespace

std::string_view RdbTypeName(uint8_t type) { return type == 0 ? "string" : TypeOf(type).name; }

absl::Status RdbReader::SkipValue(uint8_t type, std::string_view* name) {
  const ValueType value = TypeOf(type);
  if (value.shape == Shape::kUnknown)
    return Damaged(fmt::format("RDB: value type or opcode {} is not known here", type));
  *name = value.name;
  VARVE_RETURN_IF_ERROR(Skip(value.skipped));
  switch (value.shape) {
    case Shape::kOneString:
      return SkipString();
    case Shape::kStream:
      return SkipStream(type);
    case Shape::kTextScores:
    case Shape::kBinaryScores:
      return SkipSortedSet(value.shape == Shape::kBinaryScores);
    case Shape::kModule:
      VARVE_RETURN_IF_ERROR(ReadCount().status());  // the module's id
      return SkipModule();
    default:
      return SkipElements(type);
  }
}

absl::Status RdbReader::SkipElements(uint8_t type) {
  Shape shape = TypeOf(type).shape;
  if (type == kTimedHash && version_ == kValkeyDumpVersion) shape = Shape::kTimedPairs;
  const bool is_tagged = shape == Shape::kTaggedStrings || shape == Shape::kTaggedPairs;
  const bool is_single = shape == Shape::kStrings || shape == Shape::kTaggedStrings;
  VARVE_ASSIGN_OR_RETURN(const uint64_t count, ReadCount());
  for (uint64_t i = 0; i < count; ++i) {
    if (is_tagged) VARVE_RETURN_IF_ERROR(ReadCount().status());
    VARVE_RETURN_IF_ERROR(SkipStrings(is_single ? 1 : 2));
    if (shape == Shape::kTimedPairs) VARVE_RETURN_IF_ERROR(Skip(8));
  }
  return absl::OkStatus();
}

absl::Status RdbReader::SkipSortedSet(bool binary_scores) {
  constexpr uint8_t kFirstSpecialScore = 253;  // not a number, and both infinities, have no text
  VARVE_ASSIGN_OR_RETURN(const uint64_t count, ReadCount());
  for (uint64_t i = 0; i < count; ++i) {
    VARVE_RETURN_IF_ERROR(SkipString());
    uint64_t score = 8;
    if (!binary_scores) {
      VARVE_ASSIGN_OR_RETURN(const uint8_t length, ReadByte());
      score = length >= kFirstSpecialScore ? 0 : length;
    }
    VARVE_RETURN_IF_ERROR(Skip(score));
  }
  return absl::OkStatus();
}

absl::Status RdbReader::SkipStream(uint8_t type) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t nodes, ReadCount());
  VARVE_RETURN_IF_ERROR(nodes > UINT64_MAX / 2 ? Damaged("RDB: a stream of too many nodes")
                                               : SkipStrings(2 * nodes));
  // Number of entries and the last id; later also the first id, the largest deleted one, and how
  // many were ever added.
  VARVE_RETURN_IF_ERROR(SkipCounts(type >= kStreamWithCounters ? 8 : 3));
  VARVE_ASSIGN_OR_RETURN(const uint64_t groups, ReadCount());
  for (uint64_t i = 0; i < groups; ++i) VARVE_RETURN_IF_ERROR(SkipStreamGroup(type));
  return type >= kStreamWithProducers ? SkipStreamProducers() : absl::OkStatus();
}

// What keeps a producer from adding an entry twice.
absl::Status RdbReader::SkipStreamProducers() {
  VARVE_RETURN_IF_ERROR(SkipCounts(2));  // how long and how many are remembered
  VARVE_ASSIGN_OR_RETURN(const uint64_t producers, ReadCount());
  for (uint64_t i = 0; i < producers; ++i) {
    VARVE_RETURN_IF_ERROR(SkipString());
    VARVE_ASSIGN_OR_RETURN(const uint64_t entries, ReadCount());
    for (uint64_t j = 0; j < entries; ++j) {
      VARVE_RETURN_IF_ERROR(SkipString());
      VARVE_RETURN_IF_ERROR(SkipCounts(2));  // the id in the stream
    }
  }
  return SkipCounts(2);  // how many were added, and how many were there already
}

absl::Status RdbReader::SkipStreamGroup(uint8_t type) {
  VARVE_RETURN_IF_ERROR(SkipString());
  VARVE_RETURN_IF_ERROR(SkipCounts(type >= kStreamWithCounters ? 3 : 2));
  VARVE_ASSIGN_OR_RETURN(const uint64_t pending, ReadCount());
  for (uint64_t i = 0; i < pending; ++i) {
    VARVE_RETURN_IF_ERROR(Skip(16 + 8));  // id, time of delivery
    VARVE_RETURN_IF_ERROR(ReadCount().status());
  }
  VARVE_ASSIGN_OR_RETURN(const uint64_t consumers, ReadCount());
  for (uint64_t i = 0; i < consumers; ++i) {
    VARVE_RETURN_IF_ERROR(SkipString());
    VARVE_RETURN_IF_ERROR(Skip(type >= kStreamWithActiveTime ? 16 : 8));
    VARVE_ASSIGN_OR_RETURN(const uint64_t entries, ReadCount());
    for (uint64_t j = 0; j < entries; ++j) VARVE_RETURN_IF_ERROR(Skip(16));
  }
  if (type < kStreamWithRefusals) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const uint64_t refused, ReadCount());
  for (uint64_t i = 0; i < refused; ++i) VARVE_RETURN_IF_ERROR(Skip(16));
  return absl::OkStatus();
}

absl::Status RdbReader::SkipModule() {
  enum : uint64_t { kModuleEnd, kSigned, kUnsigned, kFloat, kDouble, kString };
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const uint64_t part, ReadCount());
    absl::Status skipped;
    switch (part) {
      case kModuleEnd:
        return absl::OkStatus();
      case kSigned:
      case kUnsigned:
        skipped = ReadCount().status();
        break;
      case kFloat:
        skipped = Skip(4);
        break;
      case kDouble:
        skipped = Skip(8);
        break;
      case kString:
        skipped = SkipString();
        break;
      default:
        return Damaged("RDB: module data of an unknown kind");
    }
    VARVE_RETURN_IF_ERROR(skipped);
  }
}

}  // namespace varve
