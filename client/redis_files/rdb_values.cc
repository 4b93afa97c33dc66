// How values of an RDB that are no strings are passed over: their encodings, by type number.
#include <string_view>

#include "client/redis_files/rdb_reader.h"
#include "fmt/format.h"
#include "util/base/status.h"

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
  kStream,
  kModule,
};

struct ValueType {
  std::string_view name;
  Shape shape = Shape::kUnknown;
  uint64_t skipped = 0;  // bytes in front
};

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
      return {"stream", Shape::kStream};
    // A hash whose fields expire: the length is the time; this and the next were written by
    // candidates of Redis 7.4.
    case 22:
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

}  // namespace

absl::Status RdbReader::SkipValue(uint8_t type) {
  const ValueType value = TypeOf(type);
  if (value.shape == Shape::kUnknown) {
    return input_->Damaged(fmt::format("RDB: value type or opcode {} is not known here", type));
  }
  ++notes_->left_out[std::string(value.name)];
  VARVE_RETURN_IF_ERROR(Skip(value.skipped));
  if (value.shape == Shape::kOneString) return SkipString();
  if (value.shape == Shape::kStream) return SkipStream(type);
  if (value.shape == Shape::kTextScores) return SkipSortedSet(false);
  if (value.shape == Shape::kBinaryScores) return SkipSortedSet(true);
  VARVE_ASSIGN_OR_RETURN(const uint64_t count, ReadCount());
  if (value.shape == Shape::kModule) return SkipModule();  // the count was the module's id
  const bool is_tagged = value.shape == Shape::kTaggedStrings || value.shape == Shape::kTaggedPairs;
  const bool is_pair = value.shape == Shape::kPairs || value.shape == Shape::kTaggedPairs;
  for (uint64_t i = 0; i < count; ++i) {
    if (is_tagged) VARVE_RETURN_IF_ERROR(ReadCount().status());
    VARVE_RETURN_IF_ERROR(SkipStrings(is_pair ? 2 : 1));
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
  VARVE_RETURN_IF_ERROR(nodes > UINT64_MAX / 2 ? input_->Damaged("RDB: a stream of too many nodes")
                                               : SkipStrings(2 * nodes));
  // Number of entries and the last id; later also the first id, the largest deleted one, and how
  // many were ever added.
  const int numbers = type >= kStreamWithCounters ? 8 : 3;
  for (int i = 0; i < numbers; ++i) VARVE_RETURN_IF_ERROR(ReadCount().status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t groups, ReadCount());
  for (uint64_t i = 0; i < groups; ++i) VARVE_RETURN_IF_ERROR(SkipStreamGroup(type));
  return absl::OkStatus();
}

absl::Status RdbReader::SkipStreamGroup(uint8_t type) {
  VARVE_RETURN_IF_ERROR(SkipString());
  for (int i = 0; i < (type >= kStreamWithCounters ? 3 : 2); ++i)
    VARVE_RETURN_IF_ERROR(ReadCount().status());
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
        return input_->Damaged("RDB: module data of an unknown kind");
    }
    VARVE_RETURN_IF_ERROR(skipped);
  }
}

}  // namespace varve
