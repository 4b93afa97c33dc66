#include "client/console/lines.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/console/input_file.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "fmt/format.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr size_t kLongestLine = size_t{512} << 20;

// One command, and its reply on standard output. False: it was refused. An error: there is no reply
// to be had, nor to what follows.
absl::StatusOr<bool> Execute(Client* client, const std::vector<std::string_view>& words,
                             const Output& output) {
  client->pipeline().Send(words);
  const absl::StatusOr<Reply> reply = client->Receive();
  if (!reply.ok()) {
    if (!absl::IsInvalidArgument(reply.status())) return reply.status();
    Fail(reply.status());
    return false;
  }
  // A push message was shown already.
  if (reply->type != Reply::Type::kPush) PrintOut(RenderReply(*reply, output));
  std::fflush(stdout);  // who writes the lines may wait for it
  return !reply->is_error();
}

}  // namespace

int RunLines(const CommandLine& line) {
  const Output output = Output::ForStandardOutput(line.style);
  const absl::StatusOr<std::unique_ptr<InputFile>> input = InputFile::Open("-");
  if (!input.ok()) return Fail(input.status());
  ClientOptions options = line.connection;
  options.protocol = line.protocol == 0 ? 3 : line.protocol;
  // Nobody could tell which lines had been executed.
  options.reconnect_for = std::chrono::milliseconds(0);
  options.on_push = [output](const Reply& message) {
    PrintOut(RenderReply(message, output));
    std::fflush(stdout);
  };
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  if (!client.ok()) return Fail(client.status());

  bool all_well = true;
  for (uint64_t number = 1;; ++number) {
    bool end = false;
    const absl::StatusOr<std::string_view> text = (*input)->Line(kLongestLine, &end);
    if (!text.ok()) return Fail(text.status());
    if (end) break;
    std::string unquoted(*text);
    std::vector<std::string_view> words;
    if (!SplitPlainLine(unquoted.data(), unquoted.size(), &words)) {
      Fail(absl::InvalidArgumentError(fmt::format("line {}: the quotes are not balanced", number)));
      all_well = false;
      continue;
    }
    if (words.empty()) continue;
    if (IsWord(words[0], "quit") || IsWord(words[0], "exit")) return all_well ? kDone : kErrorReply;
    const absl::StatusOr<bool> executed = Execute(client->get(), words, output);
    if (!executed.ok()) return Fail(executed.status());
    all_well &= *executed;
  }
  // Subscriptions and MONITOR go on for as long as there is a server.
  while ((*client)->pipeline().listens()) {
    const absl::Status status = (*client)->pipeline().WaitForPush(std::chrono::milliseconds(0));
    if (!status.ok()) return Fail(status);
  }
  return all_well ? kDone : kErrorReply;
}

}  // namespace varve
