#include "client/console/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client/console/json_records.h"
#include "client/console/text.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr size_t kMeasuredRows = 200;
constexpr std::string_view kKeyColour = "36";     // cyan
constexpr std::string_view kErrorColour = "31";   // red
constexpr std::string_view kNumberColour = "33";  // yellow
constexpr std::string_view kDimColour = "2";

// Text for people, such as INFO's, with its own line ends, but for the last.
std::string LaidOut(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  if (text.ends_with('\n')) text.pop_back();
  return Escaped(text, true);
}

// What stands for a reply without elements; numbered elements follow each other with their indent.
std::string RenderScalar(const Reply& reply, const Output& output) {
  switch (reply.type) {
    case Reply::Type::kNull:
      return output.Coloured("(nil)", kDimColour);
    case Reply::Type::kError:
      return output.Coloured(fmt::format("(error) {}", Escaped(reply.text)), kErrorColour);
    case Reply::Type::kSimple:
      return Escaped(reply.text);
    case Reply::Type::kInteger:
      return output.Coloured(fmt::format("(integer) {}", reply.integer), kNumberColour);
    case Reply::Type::kDouble:
      return output.Coloured(fmt::format("(double) {}", Escaped(reply.text)), kNumberColour);
    case Reply::Type::kBool:
      return reply.integer != 0 ? "(true)" : "(false)";
    default:
      if (reply.is_verbatim) return LaidOut(reply.text);
      return fmt::format("\"{}\"", Escaped(reply.text, false, true));
  }
}

bool HasElements(const Reply& reply) {
  return reply.type == Reply::Type::kArray || reply.type == Reply::Type::kMap ||
         reply.type == Reply::Type::kPush;
}

void RenderTree(const Reply& reply, const Output& output, const std::string& indent,
                std::string* text) {
  if (!HasElements(reply)) {
    *text += RenderScalar(reply, output) + "\n";
    return;
  }
  if (reply.elements.empty()) {
    *text += reply.type == Reply::Type::kMap ? "(empty map)\n" : "(empty array)\n";
    return;
  }
  const bool is_map = reply.type == Reply::Type::kMap;
  const size_t each = is_map ? 2 : 1;
  const size_t count = reply.elements.size() / each;
  const size_t digits = fmt::to_string(count).size();
  for (size_t i = 0; i < count; ++i) {
    const std::string label = fmt::format("{:>{}}{} ", i + 1, digits, is_map ? '#' : ')');
    if (i > 0) *text += indent;
    *text += output.Coloured(label, kDimColour);
    std::string inner = indent + std::string(label.size(), ' ');
    if (is_map) {
      const std::string key = RenderScalar(reply.elements[i * 2], output) + " => ";
      *text += output.Coloured(key, kKeyColour);
      inner += std::string(DisplayWidth(key), ' ');
    }
    RenderTree(reply.elements[i * each + each - 1], output, inner, text);
  }
}

void RenderRaw(const Reply& reply, std::string* text) {
  if (HasElements(reply)) {
    for (const Reply& element : reply.elements) RenderRaw(element, text);
    return;
  }
  if (reply.type == Reply::Type::kInteger || reply.type == Reply::Type::kBool)
    *text += fmt::to_string(reply.integer);
  *text += reply.text + "\n";
}

void AppendJson(const Reply& reply, std::string* json) {
  const char* separator = "";
  switch (reply.type) {
    case Reply::Type::kNull:
      *json += "null";
      break;
    case Reply::Type::kInteger:
      *json += fmt::to_string(reply.integer);
      break;
    case Reply::Type::kBool:
      *json += reply.integer != 0 ? "true" : "false";
      break;
    case Reply::Type::kError:
      *json += "{\"error\":";
      AppendJsonBytes(reply.text, json);
      *json += '}';
      break;
    case Reply::Type::kArray:
    case Reply::Type::kPush:
      *json += '[';
      for (const Reply& element : reply.elements) {
        *json += std::exchange(separator, ",");
        AppendJson(element, json);
      }
      *json += ']';
      break;
    case Reply::Type::kMap:
      *json += '{';
      for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        *json += std::exchange(separator, ",");
        const Reply& name = reply.elements[i];
        AppendJsonString(name.text.empty() ? fmt::to_string(name.integer) : Escaped(name.text),
                         json);
        *json += ':';
        AppendJson(reply.elements[i + 1], json);
      }
      *json += '}';
      break;
    default:  // a double may be inf, which JSON has no number for
      AppendJsonBytes(reply.text, json);
  }
}

}  // namespace

Output Output::ForStandardOutput(OutputStyle wanted) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  Output output;
  output.style = wanted != OutputStyle::kAuto ? wanted
                 : terminal                   ? OutputStyle::kTable
                                              : OutputStyle::kRaw;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  output.colours = terminal && output.style == OutputStyle::kTable &&
                   (no_colour == nullptr || *no_colour == '\0') && kind != nullptr &&
                   std::string_view(kind) != "dumb";
  output.width = TerminalWidth(STDOUT_FILENO).value_or(output.width);
  return output;
}

std::optional<size_t> TerminalWidth(int descriptor) {
  constexpr size_t kLeast = 20;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return std::max<size_t>(size.ws_col, kLeast);
}

std::string Output::Coloured(std::string_view text, std::string_view code) const {
  return colours ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

void PrintOut(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

void PairPrinter::Add(std::string_view key, std::string_view value) {
  ++rows_;
  if (output_.style == OutputStyle::kJson) {
    std::string line;
    if (keys_only_) {
      AppendJsonBytes(key, &line);
      line += '\n';
    } else {
      AppendJsonRecord(key, value, /*expiry=*/"", /*metadata=*/"", &line);
    }
    return PrintOut(line);
  }
  if (output_.style == OutputStyle::kRaw) {
    PrintOut(key);
    if (!keys_only_) {
      PrintOut("\t");
      PrintOut(value);
    }
    return PrintOut("\n");
  }
  // No more of a long value is escaped than can be seen.
  const std::string shown_key = Escaped(key.substr(0, 4 * output_.width));
  const std::string shown_value = Escaped(value.substr(0, 4 * output_.width));
  if (measured_) return PrintRow(shown_key, shown_value);
  held_back_.emplace_back(shown_key, shown_value);
  if (held_back_.size() == kMeasuredRows) PrintHeldBack();
}

void PairPrinter::PrintRow(std::string_view key, std::string_view value) {
  if (keys_only_) return PrintOut(output_.Coloured(Fitted(key, output_.width), kKeyColour) + "\n");
  const std::string fitted = Fitted(key, key_width_);
  const std::string padding(key_width_ - std::min(key_width_, DisplayWidth(fitted)), ' ');
  PrintOut(fmt::format("{}{}  {}\n", output_.Coloured(fitted, kKeyColour), padding,
                       Fitted(value, output_.width - key_width_ - 2)));
}

void PairPrinter::PrintHeldBack() {
  measured_ = true;
  key_width_ = 3;
  for (const auto& [key, value] : held_back_) key_width_ = std::max(key_width_, DisplayWidth(key));
  key_width_ = std::min(key_width_, output_.width / 2);
  if (!held_back_.empty()) {
    const std::string title =
        keys_only_ ? std::string("key") : fmt::format("{:<{}}  {}", "key", key_width_, "value");
    PrintOut(output_.Coloured(title, "1") + "\n");
  }
  for (const auto& [key, value] : held_back_) PrintRow(key, value);
  held_back_.clear();
}

void PairPrinter::Finish() {
  if (output_.style != OutputStyle::kTable) return;
  if (!measured_) PrintHeldBack();
  PrintOut(
      output_.Coloured(fmt::format("({} {})", rows_, rows_ == 1 ? "key" : "keys"), kDimColour) +
      "\n");
}

std::string RenderReply(const Reply& reply, const Output& output) {
  if (output.style == OutputStyle::kJson) return JsonOf(reply) + "\n";
  std::string text;
  if (output.style == OutputStyle::kRaw) {
    RenderRaw(reply, &text);
  } else {
    RenderTree(reply, output, "", &text);
  }
  return text;
}

std::string JsonOf(const Reply& reply) {
  std::string json;
  AppendJson(reply, &json);
  return json;
}

}  // namespace varve
