#include "client/cli/tree.h"

#include <vector>

#include "client/console/text.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr std::string_view kDirectoryColour = "1;34";
constexpr std::string_view kFigureColour = "2";

struct Lines {
  std::string_view branch, last_branch, trunk;
};
constexpr Lines kUtf8{"├── ", "└── ", "│   "};
constexpr Lines kAscii{"|-- ", "`-- ", "|   "};
constexpr std::string_view kNoTrunk = "    ";

class TreePrinter {
 public:
  TreePrinter(const TreeStyle& style, std::string_view delimiter, const Output& output)
      : style_(style),
        delimiter_(delimiter),
        output_(output),
        lines_(style.ascii ? kAscii : kUtf8) {}

  void Draw(const Reply& tree) {
    DrawNames(tree);
    // Where the reply may have been cut, the last directories have more than it shows.
    const bool is_cut =
        style_.limit >= 0 && directories_ + keys_ >= static_cast<uint64_t>(style_.limit);
    CountNamesakes(tree, /*depth=*/1, is_cut);
  }
  std::string Text(std::string_view root) const {
    return fmt::format("{}\n{}\n{}, {}\n", output_.Coloured(Escaped(root), kDirectoryColour), text_,
                       Count(directories_, "directory", "directories"),
                       Count(keys_, "key", "keys"));
  }

 private:
  static constexpr size_t kFields = 4;  // name, keys, bytes, what is in it

  void DrawNames(const Reply& nodes) {
    for (const Reply& node : nodes.elements) {
      if (node.elements.size() != kFields) continue;
      const bool is_last = &node == &nodes.elements.back();
      text_ += trunks_;
      text_ += is_last ? lines_.last_branch : lines_.branch;
      Name(node);
      const size_t begin = trunks_.size();
      trunks_ += is_last ? kNoTrunk : lines_.trunk;
      DrawNames(node.elements.back());
      trunks_.resize(begin);
    }
  }
  // Counts the keys that are named as their directory, delimiter included: such a directory has one
  // key more than the names in it. `is_cut`: the last of the nodes may have more keys than those.
  void CountNamesakes(const Reply& nodes, size_t depth, bool is_cut) {
    if (depth >= style_.depth) return;
    for (const Reply& node : nodes.elements) {
      if (node.elements.size() != kFields || !node.elements[0].text.ends_with(delimiter_)) continue;
      const bool may_have_more = is_cut && &node == &nodes.elements.back();
      int64_t keys = node.elements[1].integer;
      for (const Reply& each : node.elements.back().elements)
        keys -= each.elements.size() == kFields ? each.elements[1].integer : 0;
      if (keys > 0 && !may_have_more) ++keys_;
      CountNamesakes(node.elements.back(), depth + 1, may_have_more);
    }
  }
  static std::string Count(uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  }
  void Name(const Reply& node) {
    const std::string& name = node.elements[0].text;
    const bool is_directory = name.ends_with(delimiter_);
    ++(is_directory ? directories_ : keys_);
    text_ += is_directory ? output_.Coloured(Escaped(name), kDirectoryColour) : Escaped(name);
    if (style_.sizes) {
      const auto keys = static_cast<uint64_t>(node.elements[1].integer);
      const std::string bytes = HumanBytes(static_cast<double>(node.elements[2].integer));
      text_ +=
          output_.Coloured(is_directory ? fmt::format("  {}, {}", Count(keys, "key", "keys"), bytes)
                                        : fmt::format("  {}", bytes),
                           kFigureColour);
    }
    text_ += '\n';
  }

  const TreeStyle style_;
  const std::string_view delimiter_;
  const Output& output_;
  const Lines lines_;
  std::string text_;
  std::string trunks_;  // in front of each line at this depth
  uint64_t directories_ = 0;
  uint64_t keys_ = 0;
};

}  // namespace

std::string DrawTree(const Reply& tree, std::string_view root, const TreeStyle& style,
                     std::string_view delimiter, const Output& output) {
  TreePrinter printer(style, delimiter, output);
  printer.Draw(tree);
  return printer.Text(root);
}

int RunTree(Client& client, const CommandLine& line, const Output& output) {
  const TreeOptions& options = line.tree;
  const std::string_view prefix = line.words.size() > 1 ? line.words[1] : std::string_view();
  const std::string depth = std::to_string(options.depth), limit = std::to_string(line.query.limit);
  std::vector<std::string_view> request = {"TREE", prefix, "DELIM", options.delimiter};
  if (options.depth != 0) request.insert(request.end(), {"DEPTH", depth});
  if (line.query.limit >= 0) request.insert(request.end(), {"LIMIT", limit});
  const bool is_json = output.style == OutputStyle::kJson;
  if (options.sizes || !is_json) request.emplace_back("WITHSIZES");
  const absl::StatusOr<Reply> reply = client.Call(request);
  if (!reply.ok()) return Fail(reply.status());
  if (reply->is_error()) return Fail(absl::InvalidArgumentError(reply->text));
  TreeStyle style{.ascii = options.ascii, .sizes = options.sizes, .limit = line.query.limit};
  if (options.depth != 0) style.depth = static_cast<size_t>(options.depth);
  PrintOut(is_json ? JsonOf(*reply) + "\n"
                   : DrawTree(*reply, prefix.empty() ? std::string_view(".") : prefix, style,
                              options.delimiter, output));
  return kDone;
}

}  // namespace varve
