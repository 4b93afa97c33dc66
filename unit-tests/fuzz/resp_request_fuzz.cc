// Requests as a server reads them: what comes in pieces is read as what comes at once, whatever the
// pieces, and what was read is read again from its canonical form.
//
//   input = [ flags: 1; bit 0: small limits, bit 1: not logged in ][ seed of the pieces' sizes: 1
//   ][ the connection's bytes ]
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit-tests/fuzz/fuzz_target.h"
#include "util/resp/resp_buffer.h"
#include "util/resp/resp_parser.h"
#include "util/resp/resp_reply.h"

namespace varve::fuzz {
namespace {

using Words = std::vector<std::string>;

constexpr RespLimits kSmallLimits = {
    .max_line = 64, .max_arguments = 12, .max_bulk = 40, .max_request = 200};

struct Outcome {
  std::vector<Words> requests;
  bool failed = false;
  std::string error;
  size_t consumed = 0;  // by the requests
};

Words Owned(const std::vector<std::string_view>& views) {
  return Words(views.begin(), views.end());
}

// Feeds `bytes`, in pieces of the sizes that `next_size` gives.
template <typename NextSize>
Outcome Parse(std::string_view bytes, const RespLimits& limits, bool trusted, NextSize next_size) {
  RespParser parser(limits);
  parser.set_trusted(trusted);
  Outcome outcome;
  std::string held;      // arrived and not consumed; a plain line is unquoted in place
  size_t awaited = 0;    // no request may be complete before so many bytes are held
  bool waiting = false;  // the parser has seen what is held
  while (true) {
    ExactCopy buffer(held);
    std::vector<std::string_view> arguments;
    size_t consumed = 0;
    const RespParser::Result result =
        waiting && held.empty() ? RespParser::Result::kNeedMore
                                : parser.Next(buffer.data(), buffer.size(), &arguments, &consumed);
    held.assign(buffer.view());
    if (result == RespParser::Result::kError) {
      VARVE_FUZZ_REQUIRE(parser.error().starts_with("ERR Protocol error: "));
      outcome.failed = true;
      outcome.error = parser.error();
      return outcome;
    }
    if (result == RespParser::Result::kRequest) {
      VARVE_FUZZ_REQUIRE(buffer.size() >= awaited);
      VARVE_FUZZ_REQUIRE(consumed > 0 && consumed <= buffer.size());
      VARVE_FUZZ_REQUIRE(parser.idle());
      for (const std::string_view argument : arguments) {
        VARVE_FUZZ_REQUIRE(argument.data() >= buffer.data());
        VARVE_FUZZ_REQUIRE(argument.data() + argument.size() <= buffer.data() + consumed);
      }
      outcome.requests.push_back(Owned(arguments));
      outcome.consumed += consumed;
      held.erase(0, consumed);
      awaited = 0;
      continue;
    }
    VARVE_FUZZ_REQUIRE(arguments.empty());
    VARVE_FUZZ_REQUIRE(parser.missing() >= 1);
    awaited = held.size() + parser.missing();
    waiting = true;
    if (bytes.empty()) return outcome;
    const size_t size = std::min<size_t>(std::max<size_t>(next_size(), 1), bytes.size());
    held.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

void RequireReadableAgain(const Words& request) {
  if (request.empty()) return;  // an empty line
  ByteBuffer encoded;
  AppendRequest(std::vector<std::string_view>(request.begin(), request.end()), &encoded);
  RespParser parser;
  std::vector<std::string_view> arguments;
  size_t consumed = 0;
  VARVE_FUZZ_REQUIRE(parser.Next(encoded.data(), encoded.size(), &arguments, &consumed) ==
                     RespParser::Result::kRequest);
  VARVE_FUZZ_REQUIRE(consumed == encoded.size());
  VARVE_FUZZ_REQUIRE(Owned(arguments) == request);
}

void Run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  uint32_t random = input.Byte();
  const std::string_view stream = input.Rest().substr(0, 4096);
  const RespLimits limits = (flags & 1) != 0 ? kSmallLimits : RespLimits();
  const bool trusted = (flags & 2) == 0;

  const Outcome whole = Parse(stream, limits, trusted, [&] { return stream.size(); });
  const Outcome pieces = Parse(stream, limits, trusted, [&random] {
    random = random * 1664525 + 1013904223;
    return (random >> 24) % (random >> 16 & 1 ? 3 : 40);
  });
  VARVE_FUZZ_REQUIRE(whole.requests == pieces.requests);
  VARVE_FUZZ_REQUIRE(whole.failed == pieces.failed);
  VARVE_FUZZ_REQUIRE(whole.consumed == pieces.consumed);
  VARVE_FUZZ_REQUIRE(whole.error == pieces.error);
  for (const Words& request : whole.requests) RequireReadableAgain(request);
}

std::vector<std::string> Seeds() {
  const std::vector<std::string> streams = {
      "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\nPING\r\n",
      "GET \"k\\x00\\n\" 'it\\'s'\n\r\nSET a b\r\n",
      "*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$"
      "40\r\n0123456789012345678901234567890123456789\r\n",
      "*1\r\n$-1\r\n",
      "*1\r\n$5\r\nPING\r\n",
      "*12345678901\r\n",
      "*2\r\n$3\r\nGET\r\n:1\r\n",
      std::string("*1\r\n$3\r\na\0b\r\n", 13),
      std::string(80, 'a') + "\r\n",
      "*" + std::string(70, '1') + "\r\n",
      "\x16\x03\x01",
      "SET \"a",
  };
  std::vector<std::string> seeds;
  for (const std::string& stream : streams) {
    for (const char flags : {'\0', '\1', '\2'})
      seeds.push_back(std::string(1, flags) + "\x07" + stream);
  }
  return seeds;
}

const Announced kTarget({"resp_request", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
