#include "client/cli/prompt.h"

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command_docs.h"
#include "client/cli/line_editor.h"
#include "client/cli/output.h"
#include "client/client.h"
#include "client/socket.h"
#include "fmt/format.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kReconnectFor{3000};
constexpr std::chrono::milliseconds kListenPause{200};

volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int) { interrupted = 1; }

std::string HistoryPath() {
  if (const char* path = std::getenv("VARVE_HISTORY"); path != nullptr) return path;
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::string() : fmt::format("{}/.varve_history", home);
}

bool IsWord(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if ((word[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

class Prompt {
 public:
  Prompt(std::unique_ptr<Client> client, const Output& output) : client_(std::move(client)), output_(output) {
    if (const absl::StatusOr<Reply> reply = client_->Call({"COMMAND", "DOCS"}); reply.ok()) {
      docs_ = CommandDocs::FromReply(*reply);
    }
  }

  int Run() {
    LineEditor editor(fmt::format("{}> ", AddressOf(client_->pipeline().options())), HistoryPath(), &docs_);
    while (std::optional<std::string> line = editor.Read()) {
      std::string unquoted = *line;
      std::vector<std::string_view> words;
      if (!SplitPlainLine(unquoted.data(), unquoted.size(), &words)) {
        Print("The quotes are not balanced.\n");
        continue;
      }
      if (words.empty()) continue;
      editor.Remember(*line);
      if (IsWord(words[0], "quit") || IsWord(words[0], "exit")) return kDone;
      Execute(words);
    }
    Print("\n");
    return kDone;
  }

 private:
  static void Print(std::string_view text) {
    PrintOut(text);
    std::fflush(stdout);
  }

  void Execute(const std::vector<std::string_view>& words) {
    if (IsWord(words[0], "help")) return Help(words.size() > 1 ? words[1] : std::string_view());
    const bool lists_pairs = (IsWord(words[0], "range") || IsWord(words[0], "prefix")) && !AsksForKeys(words);
    client_->pipeline().Send(words);
    const absl::StatusOr<Reply> reply = client_->Receive();
    if (!reply.ok()) return Print(output_.Coloured(std::string(reply.status().message()), "31") + "\n");
    if (lists_pairs && reply->type == Reply::Type::kArray && reply->elements.size() % 2 == 0) {
      PrintPairs(*reply);
    } else if (reply->type != Reply::Type::kPush) {  // a push message was shown already
      Print(RenderReply(*reply, output_));
    }
    if (reply->type == Reply::Type::kPush && (IsWord(words[0], "subscribe") || IsWord(words[0], "psubscribe")))
      Listen();
  }

  static bool AsksForKeys(const std::vector<std::string_view>& words) {
    for (size_t i = 2; i < words.size(); ++i) {
      if (IsWord(words[i], "keys")) return true;
    }
    return false;
  }

  void PrintPairs(const Reply& reply) {
    PairPrinter printer(output_, false);
    for (size_t i = 0; i < reply.elements.size(); i += 2)
      printer.Add(reply.elements[i].text, reply.elements[i + 1].text);
    printer.Finish();
    std::fflush(stdout);
  }

  // Shows published messages until Ctrl-C.
  void Listen() {
    Print("Messages are shown as they come; Ctrl-C ends that.\n");
    interrupted = 0;
    const auto before = std::signal(SIGINT, OnInterrupt);
    absl::Status status;
    while (!interrupted && (status.ok() || absl::IsDeadlineExceeded(status))) {
      status = client_->pipeline().WaitForPush(kListenPause);
    }
    std::signal(SIGINT, before);
    client_->pipeline().Send({"UNSUBSCRIBE"});
    client_->pipeline().Send({"PUNSUBSCRIBE"});
    while (client_->pipeline().outstanding() > 0 && client_->Receive().ok()) continue;
  }

  void Help(std::string_view name) {
    if (name.empty()) {
      Print(
          "Tab completes a command, or shows its arguments. help COMMAND describes one; quit ends.\n"
          "Arguments with blanks or special bytes go in quotes: \"a b\\n\\x00\". Commands of this server:\n");
    }
    for (const std::string& command : docs_.StartingWith(name)) {
      const CommandDoc& doc = *docs_.Find(command);
      Print(fmt::format("  {} {}\n      {}\n", output_.Coloured(command, "1"), doc.syntax, doc.summary));
    }
  }

  const std::unique_ptr<Client> client_;
  const Output output_;
  CommandDocs docs_;
};

}  // namespace

int RunPrompt(const CommandLine& line) {
  std::setlocale(LC_CTYPE, "");
  const Output output = Output::ForStandardOutput(line.style);
  ClientOptions options = line.connection;
  options.reconnect_for = kReconnectFor;
  options.protocol = 3;
  options.on_push = [output](const Reply& message) {
    PrintOut(RenderReply(message, output));
    std::fflush(stdout);
  };
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  if (!client.ok()) return Fail(client.status());
  return Prompt(*std::move(client), output).Run();
}

}  // namespace varve
