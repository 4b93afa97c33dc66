// Replies as a client reads them: a beginning of a reply asks for more and is never taken for the
// whole or for an error; what was read is read again from its canonical form; and the client's ways
// to show a reply take any.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command_docs.h"
#include "client/console/output.h"
#include "type/reply.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "util/resp/resp_reply.h"

namespace varve::fuzz {
namespace {

constexpr size_t kLongest = 4096;
constexpr size_t kPrefixes = 16;

bool Same(const Reply& a, const Reply& b) {
  return a.type == b.type && a.text == b.text && a.integer == b.integer &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(),
                    Same);
}

void Append(const Reply& reply, std::string* out) {
  const auto line = [out](char marker, std::string_view text) {
    (*out += marker).append(text).append("\r\n");
  };
  const auto elements = [&](char marker, size_t each) {
    line(marker, std::to_string(reply.elements.size() / each));
    for (const Reply& element : reply.elements) Append(element, out);
  };
  switch (reply.type) {
    case Reply::Type::kNull:
      return line('_', "");
    case Reply::Type::kSimple:
      return line('+', reply.text);
    case Reply::Type::kError:
      return line('-', reply.text);
    case Reply::Type::kInteger:
      return line(':', std::to_string(reply.integer));
    case Reply::Type::kBulk:
      line('$', std::to_string(reply.text.size()));
      out->append(reply.text).append("\r\n");
      return;
    case Reply::Type::kDouble:
      return line(',', reply.text);
    case Reply::Type::kBool:
      return line('#', reply.integer != 0 ? "t" : "f");
    case Reply::Type::kArray:
      return elements('*', 1);
    case Reply::Type::kMap:
      return elements('%', 2);
    case Reply::Type::kPush:
      return elements('>', 1);
  }
}

ReplyResult Parse(std::string_view bytes, Reply* reply, size_t* consumed) {
  const ExactCopy copy(bytes);
  return ParseReply(copy.view(), reply, consumed);
}

void RequireThatBeginningsWait(std::string_view bytes, ReplyResult whole, size_t consumed) {
  const size_t end = whole == ReplyResult::kReply ? consumed : bytes.size();
  const size_t step = std::max<size_t>(end / kPrefixes, 1);
  for (size_t size = 0; size < end; size += step) {
    Reply reply;
    size_t ignored = 0;
    const ReplyResult result = Parse(bytes.substr(0, size), &reply, &ignored);
    VARVE_FUZZ_REQUIRE(result != ReplyResult::kReply);
    VARVE_FUZZ_REQUIRE(result != ReplyResult::kError || whole == ReplyResult::kError);
  }
}

void Run(std::string_view input) {
  const std::string_view bytes = input.substr(0, kLongest);
  Reply reply;
  size_t consumed = 0;
  const ReplyResult result = Parse(bytes, &reply, &consumed);
  VARVE_FUZZ_REQUIRE(result != ReplyResult::kReply || (consumed > 0 && consumed <= bytes.size()));
  RequireThatBeginningsWait(bytes, result, consumed);
  if (result != ReplyResult::kReply) return;

  std::string canonical;
  Append(reply, &canonical);
  Reply again;
  size_t consumed_again = 0;
  VARVE_FUZZ_REQUIRE(Parse(canonical, &again, &consumed_again) == ReplyResult::kReply);
  VARVE_FUZZ_REQUIRE(consumed_again == canonical.size());
  VARVE_FUZZ_REQUIRE(Same(reply, again));

  VARVE_FUZZ_REQUIRE(!JsonOf(reply).empty());
  for (const OutputStyle style : {OutputStyle::kRaw, OutputStyle::kTable, OutputStyle::kJson}) {
    (void)RenderReply(reply, {.style = style, .colours = style == OutputStyle::kTable});
  }
  const CommandDocs docs = CommandDocs::FromReply(reply);
  (void)Complete(docs, bytes.substr(0, 2));
}

std::vector<std::string> Seeds() {
  return {
      "+OK\r\n",
      "-ERR no such key\r\n",
      ":-42\r\n",
      "$5\r\nhello\r\n",
      "$-1\r\n",
      "$0\r\n\r\n",
      "_\r\n",
      "#t\r\n#f\r\n",
      ",1.5e3\r\n",
      "=15\r\ntxt:Some string\r\n",
      "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
      "%1\r\n+a\r\n*-1\r\n",
      "~1\r\n:1\r\n",
      ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
      "*2\r\n$3\r\nget\r\n*4\r\n$7\r\nsummary\r\n$3\r\nGet\r\n$6\r\nsyntax\r\n$3\r\nkey\r\n",
      "%1\r\n$3\r\nset\r\n%2\r\n$7\r\nsummary\r\n$3\r\nSet\r\n$9\r\narguments\r\n*1\r\n%4\r\n$"
      "4\r\nname\r\n$"
      "3\r\nkey\r\n"
      "$4\r\ntype\r\n$5\r\noneof\r\n$5\r\nflags\r\n*1\r\n+optional\r\n$9\r\narguments\r\n*0\r\n",
      "*9223372036854775807\r\n",
      "%4611686018427387904\r\n",
      "!3\r\n"};
}

const Announced kTarget({"resp_reply", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
