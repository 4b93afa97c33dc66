#include "client/cli/prompt.h"

#include <termios.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command_docs.h"
#include "client/cli/line_editor.h"
#include "client/client.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "client/socket.h"
#include "fmt/format.h"
#include "util/base/letter_case.h"
#include "util/base/nearest_text.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kReconnectFor{3000};
constexpr std::chrono::milliseconds kListenPause{200};

std::string HistoryPath() {
  if (const char* path = std::getenv("VARVE_HISTORY"); path != nullptr) return path;
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::string() : fmt::format("{}/.varve_history", home);
}

// Asks for a password on the terminal, without showing it. Nothing: there is none to be had.
std::optional<std::string> AskForPassword(const std::string& address) {
  termios before{};
  if (tcgetattr(STDIN_FILENO, &before) != 0) return std::nullopt;
  termios silent = before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  PrintOut(fmt::format("Password for {}: ", address));
  std::fflush(stdout);
  const Interrupt interrupt;  // ends the reading, so that the echo comes back
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
  std::string password;
  int c = 0;
  while ((c = std::getchar()) != EOF && c != '\n') password += static_cast<char>(c);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
  PrintOut("\n");
  if (password.empty() || interrupt.happened()) return std::nullopt;
  return password;
}

class Prompt {
 public:
  Prompt(std::unique_ptr<Client> client, const Output& output)
      : client_(std::move(client)), output_(output) {
    if (const absl::StatusOr<Reply> reply = client_->Call({"COMMAND", "DOCS"}); reply.ok()) {
      docs_ = CommandDocs::FromReply(*reply);
    }
  }

  int Run() {
    LineEditor editor(HistoryPath(), &docs_);
    while (std::optional<std::string> line = editor.Read(PromptText())) {
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
  // As redis-cli shows it: the database or namespace in use behind the address, unless it is
  // database 0, and "(TX)" between MULTI and its end.
  std::string PromptText() const {
    const std::string selected = client_->pipeline().selected();
    const std::string address = AddressOf(client_->pipeline().options());
    const std::string database =
        selected.empty() || selected == "0" ? "" : fmt::format("[{}]", Escaped(selected));
    return fmt::format("{}{}{}> ", address, database, in_transaction_ ? "(TX)" : "");
  }

  static void Print(std::string_view text) {
    PrintOut(text);
    std::fflush(stdout);
  }

  void Execute(const std::vector<std::string_view>& words) {
    if (IsWord(words[0], "help")) return Help(words.size() > 1 ? words[1] : std::string_view());
    if (!in_transaction_ && (IsWord(words[0], "range") || IsWord(words[0], "prefix")))
      return List(words);
    const size_t reconnects = client_->pipeline().reconnects();
    client_->pipeline().Send(words);
    const absl::StatusOr<Reply> reply = client_->Receive();
    if (in_transaction_ && (!reply.ok() || client_->pipeline().reconnects() != reconnects)) {
      Print("The connection was lost, and with it the transaction: nothing of it was done.\n");
      in_transaction_ = false;
      (void)client_->Call({"DISCARD"});  // so that the next line is none of it
    }
    if (!reply.ok()) return PrintError(reply.status());
    FollowTransaction(words[0], *reply);
    // A push message was shown already.
    if (reply->type != Reply::Type::kPush) Print(RenderReply(*reply, output_));
    if (client_->pipeline().listens()) Listen();
    // RESET takes the connection back to RESP2.
    if (IsWord(words[0], "reset") && !reply->is_error()) client_->pipeline().Disconnect();
  }

  void FollowTransaction(std::string_view command, const Reply& reply) {
    if (IsWord(command, "multi") && !reply.is_error()) in_transaction_ = true;
    if (IsWord(command, "exec") || IsWord(command, "reset")) in_transaction_ = false;
    if (IsWord(command, "discard") && !reply.is_error()) in_transaction_ = false;
  }

  void PrintError(const absl::Status& status) const {
    Print(output_.Coloured(std::string(status.message()), "31") + "\n");
  }

  static bool AsksForKeys(const std::vector<std::string_view>& words) {
    for (size_t i = 2; i < words.size(); ++i) {
      if (IsWord(words[i], "keys")) return true;
    }
    return false;
  }

  // Keys as they arrive, so that a range may be larger than memory; Ctrl-C ends it.
  void List(const std::vector<std::string_view>& words) {
    const bool keys_only = AsksForKeys(words);
    PairPrinter printer(output_, keys_only);
    std::string key;
    bool has_key = false;
    const Interrupt interrupt;
    ReplySink sink;
    sink.element = [&](Reply&& element) {
      if (keys_only || has_key) {
        printer.Add(keys_only ? element.text : key, element.text);
      } else {
        key = std::move(element.text);
      }
      has_key = !keys_only && !has_key;
      return !interrupt.happened();
    };
    client_->pipeline().SendStream(words, std::move(sink));
    const absl::StatusOr<Reply> reply = client_->Receive();
    if (reply.ok() && reply->is_error()) return Print(RenderReply(*reply, output_));
    printer.Finish();
    if (interrupt.happened()) return Print("(interrupted)\n");
    if (!reply.ok()) return PrintError(reply.status());
    std::fflush(stdout);
  }

  // Shows what comes unasked (published messages, MONITOR's lines) until Ctrl-C. A lost connection
  // is made again.
  void Listen() {
    Print("Messages are shown as they come; Ctrl-C ends that.\n");
    const Interrupt interrupt;
    bool lost = false;
    while (!interrupt.happened()) {
      const absl::Status status = client_->pipeline().WaitForPush(kListenPause);
      const bool is_lost = !status.ok() && !absl::IsDeadlineExceeded(status);
      if (is_lost && !lost) PrintError(status);
      lost = is_lost;
    }
    Print("\n");
    client_->pipeline().Disconnect();
  }

  void Help(std::string_view name) {
    if (name.empty()) {
      Print(
          "Tab completes a command, or shows its arguments. help COMMAND describes one; quit "
          "ends.\n"
          "Arguments with blanks or special bytes go in quotes: \"a b\\n\\x00\". Commands of this "
          "server:\n");
    }
    const std::vector<std::string> commands = docs_.StartingWith(name);
    if (commands.empty()) return HelpWithUnknown(name);
    for (const std::string& command : commands) {
      const CommandDoc& doc = *docs_.Find(command);
      Print(fmt::format("  {} {}\n      {}\n", output_.Coloured(command, "1"), doc.syntax,
                        doc.summary));
    }
  }

  void HelpWithUnknown(std::string_view name) const {
    const std::vector<std::string> known = docs_.StartingWith("");
    const std::string_view nearest =
        NearestText(LowerCase(name), std::vector<std::string_view>(known.begin(), known.end()));
    Print(fmt::format("The server has no command {}{}\n", Escaped(name),
                      nearest.empty() ? "." : fmt::format("; did you mean {}?", nearest)));
  }

  const std::unique_ptr<Client> client_;
  const Output output_;
  CommandDocs docs_;
  bool in_transaction_ = false;
};

}  // namespace

int RunPrompt(const CommandLine& line) {
  std::setlocale(LC_CTYPE, "");
  const Output output = Output::ForStandardOutput(line.style);
  ClientOptions options = line.connection;
  options.reconnect_for = kReconnectFor;
  options.protocol = line.protocol == 0 ? 3 : line.protocol;
  options.on_push = [output](const Reply& message) {
    PrintOut(RenderReply(message, output));
    std::fflush(stdout);
  };
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  if (absl::IsUnauthenticated(client.status()) && options.password.empty()) {
    const std::optional<std::string> password = AskForPassword(AddressOf(options));
    if (!password) return Fail(client.status());
    options.password = *password;
    client = Client::Connect(options);
  }
  if (!client.ok()) return Fail(client.status());
  return Prompt(*std::move(client), output).Run();
}

}  // namespace varve
