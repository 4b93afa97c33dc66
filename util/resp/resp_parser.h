// The RESP parser reads requests from the bytes of a connection: RESP arrays of bulk strings and
// plain typed lines ("inline commands"). It is incremental and copies nothing: arguments are views
// into the caller's bytes. It unquotes a plain line in place, which only shortens it. It allocates
// nothing from a length that a client declares; memory grows with the bytes that arrived. Error
// texts are those of Redis 7, so that clients recognise them; after an error the protocol is lost
// and the connection closes.
//
//   *2 CRLF  $3 CRLF GET CRLF  $1 CRLF k CRLF        an array
//   GET "k\x00"  LF                                  a plain line; CR before LF is dropped
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

struct RespLimits {
  size_t max_line = 64 * 1024;           // bytes of a plain line or of a length header
  int64_t max_arguments = 1024 * 1024;   // of one array
  int64_t max_bulk = 512 * 1024 * 1024;  // bytes of one argument
  // Bytes of one array with its headers: two of the largest arguments and a bit.
  size_t max_request = 1025u << 20;
};

class RespParser {
 public:
  enum class Result {
    // One request was read; it may have no arguments (an empty line), which asks for no answer.
    kRequest,
    kNeedMore,  // call again with the same bytes and more behind them
    kError,     // error() says why; don't call again
  };

  RespParser() = default;
  explicit RespParser(const RespLimits& limits) : limits_(limits) {}

  // Reads the next request from `data[0, size)`, which begins right after the last request read.
  // Appends its arguments to `*arguments` and sets `*consumed` to its length. After kNeedMore the
  // bytes may move in memory but must stay the same.
  Result Next(char* data, size_t size, std::vector<std::string_view>* arguments, size_t* consumed);

  // Off: requests are held to what a client may send that has not said who it is, 10 arguments of
  // 16 KiB each.
  void set_trusted(bool trusted) { trusted_ = trusted; }

  // Bytes of one argument from the next header on.
  void set_max_bulk(size_t bytes) { limits_.max_bulk = static_cast<int64_t>(bytes); }

  // The error reply's text without the leading "-", e.g. "ERR Protocol error: invalid bulk length".
  const std::string& error() const { return error_; }

  // After kNeedMore: how many bytes at least are missing to complete the argument being read (1 if
  // unknown).
  size_t missing() const { return missing_; }

  // Memory of what is known of a request that is not complete, beside its bytes.
  size_t memory() const { return ranges_.capacity() * sizeof(Range); }

  // True between requests: nothing of the next request has been read.
  bool idle() const { return remaining_ == 0 && position_ == 0; }

 private:
  struct Range {
    size_t offset;
    size_t size;
  };

  // A whole array of a few arguments whose headers are as clients write them, in one pass: by far
  // the most requests. False: it is not one, and nothing is changed.
  bool TakePlainArray(const char* data, size_t size, std::vector<std::string_view>* arguments,
                      size_t* consumed) const;
  Result NextArray(const char* data, size_t size);
  // Reads the decimal after the marker at `position_` up to CRLF. kRequest: `*value` is set and
  // `position_` is behind it.
  Result ReadLength(const char* data, size_t size, std::string_view too_long,
                    std::string_view invalid, int64_t* value);
  Result Fail(std::string_view what);

  RespLimits limits_;
  bool trusted_ = true;
  size_t position_ = 0;    // bytes of this request already understood
  int64_t remaining_ = 0;  // arguments still to come
  // Declared length of the argument at position_, -1: its header is still to come.
  int64_t bulk_ = -1;
  size_t missing_ = 1;
  std::vector<Range> ranges_;  // arguments read so far
  std::string error_;
};

// Splits a plain line into arguments with the quoting of redis-cli: blanks separate, "..." knows \n
// \r \t \b \a \xHH and \c for any other character c, '...' knows \'. Works in place; the views
// point into `line`. False: quotes are unbalanced.
bool SplitPlainLine(char* line, size_t size, std::vector<std::string_view>* arguments);

// Reads a decimal of RESP: an optional minus sign, no plus sign, no leading zeros, within int64.
bool ParseRespInteger(std::string_view text, int64_t* value);
// Reads one that is not negative.
bool ParseRespCount(std::string_view text, uint64_t* count);

}  // namespace varve
