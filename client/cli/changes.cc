#include "client/cli/changes.h"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kBlock = "1000";  // milliseconds, between two looks at Ctrl-C
constexpr size_t kParts = 4;                 // of a reply
constexpr size_t kFields = 6;                // of an operation

bool IsArray(const Reply& reply, size_t least) {
  return reply.type == Reply::Type::kArray && reply.elements.size() >= least;
}

void AppendText(std::string_view name, const Reply& reply, std::string* out) {
  *out += fmt::format(",\"{}\":", name);
  reply.is_null() ? (void)(*out += "null") : AppendJsonBytes(reply.text, out);
}

// {"version":7,"ms":1764000000000,"ops":[{"op":"set","namespace":"0","key":"k","value":"v",
// "expires_ms":0}]}
std::string JsonLine(const Reply& commit) {
  std::string line = fmt::format("{{\"version\":{},\"ms\":{},\"ops\":[", commit.elements[0].integer,
                                 commit.elements[1].integer);
  bool is_first = true;
  for (const Reply& operation : commit.elements[2].elements) {
    if (!IsArray(operation, kFields)) continue;
    line += is_first ? "{\"op\":" : ",{\"op\":";
    is_first = false;
    AppendJsonBytes(operation.elements[0].text, &line);
    AppendText("namespace", operation.elements[1], &line);
    AppendText("key", operation.elements[2], &line);
    AppendText("value", operation.elements[3], &line);
    line += fmt::format(",\"expires_ms\":{}}}", operation.elements[4].integer);
  }
  return line + "]}\n";
}

// A line for each operation: version, milliseconds, operation, namespace, key, value.
std::string TextLines(const Reply& commit, bool is_table) {
  const auto text = [is_table](const Reply& reply) {
    return is_table ? Escaped(reply.text) : reply.text;
  };
  std::string lines;
  for (const Reply& operation : commit.elements[2].elements) {
    if (!IsArray(operation, kFields)) continue;
    lines += fmt::format("{}\t{}", commit.elements[0].integer, commit.elements[1].integer);
    for (size_t field = 0; field < 4; ++field) lines += "\t" + text(operation.elements[field]);
    lines += '\n';
  }
  return lines;
}

class ChangePrinter {
 public:
  explicit ChangePrinter(const CommandLine& line)
      : line_(line),
        output_(Output::ForStandardOutput(line.style)),
        since_(line.since.empty() ? "FIRST" : line.since) {}

  absl::Status Run() {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(line_.connection));
    const Interrupt interrupt;
    for (;;) {
      const absl::StatusOr<Reply> reply = client->Call(Request(), WhenLost::kResend);
      if (!reply.ok()) return reply.status();
      if (!IsArray(*reply, kParts))
        return absl::DataLossError("the server's reply to CHANGES makes no sense");
      const std::vector<Reply>& commits = reply->elements[3].elements;
      for (const Reply& commit : commits) Print(commit);
      if (std::fflush(stdout) != 0) return absl::OkStatus();  // RunClient() tells
      since_ = fmt::to_string(reply->elements[1].integer);
      if (interrupt.happened() || (commits.empty() && !line_.follow)) return absl::OkStatus();
    }
  }

 private:
  std::vector<std::string_view> Request() const {
    std::vector<std::string_view> words = {"CHANGES", "SINCE", since_};
    if (!line_.prefix.empty()) words.insert(words.end(), {"PREFIX", line_.prefix});
    if (line_.query.keys_only) words.push_back("KEYS");
    if (line_.follow) words.insert(words.end(), {"BLOCK", kBlock});
    return words;
  }

  void Print(const Reply& commit) const {
    if (!IsArray(commit, 3)) return;
    PrintOut(output_.style == OutputStyle::kJson
                 ? JsonLine(commit)
                 : TextLines(commit, output_.style == OutputStyle::kTable));
  }

  const CommandLine& line_;
  const Output output_;
  std::string since_;
};

}  // namespace

int RunChanges(const CommandLine& line) {
  const absl::Status status = ChangePrinter(line).Run();
  return status.ok() ? kDone : Fail(status);
}

}  // namespace varve
