#include "server/scans/tree_stream.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "server/access/visible_keys.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// A seek takes as long as so many steps.
constexpr size_t kStepsPerSeek = 16;
// About what an array's header and its figures take, besides the name.
constexpr size_t kBytesPerNode = 48;

}  // namespace

TreeStream::TreeStream(SelectedKeys keys, const TreeRequest& request)
    : request_(request), cursor_(std::move(keys), {.keys_only = true}) {
  VARVE_ASSERT(request.depth >= 1 && request.depth <= TreeRequest::kMaxDepth);
  VARVE_ASSERT(request.limit <= TreeRequest::kMaxNames);
  ended_ = cursor_.empty() || request.limit == 0;
  is_collected_ = ended_;
}

bool TreeStream::Collect(CommandContext& context) {
  while (!ended_ && cursor_.Valid()) {
    if (context.SliceSpent(cursor_.cost())) return false;
    TakeKey(context);
  }
  while (!open_.empty()) CloseDirectory(context);
  return true;
}

void TreeStream::TakeKey(CommandContext& context) {
  std::string_view name = cursor_.key().substr(request_.prefix.size());
  while (!open_.empty() && !name.starts_with(path_)) CloseDirectory(context);
  if (cut_) {  // what is left out is counted to the end of the directories that are open
    ended_ = open_.empty();
    if (!ended_) CountKey();
    return;
  }
  name.remove_prefix(path_.size());
  while (open_.size() < request_.depth) {
    const size_t delimiter = name.find(request_.delimiter);
    if (delimiter == std::string_view::npos) break;
    const std::string_view directory = name.substr(0, delimiter + request_.delimiter.size());
    if (!AddNode(directory)) return;
    path_.append(directory);
    open_.push_back({nodes_.size() - 1, path_.size()});
    name.remove_prefix(directory.size());
  }
  if (open_.size() == request_.depth) return TakeHiddenKey(context);
  // A key that is named as its directory is no name below it, but is counted.
  if (name.empty() && open_.empty()) return cursor_.Step();
  if (!name.empty() && !AddNode(name)) return;
  if (!name.empty()) {
    nodes_.back().keys = 1;
    nodes_.back().bytes = cursor_.key().size() + cursor_.value_size();
  }
  open_.empty() ? cursor_.Step() : CountKey();
}

bool TreeStream::AddNode(std::string_view name) {
  const auto names = static_cast<int64_t>(nodes_.size());
  cut_ = names == request_.limit;
  too_large_ =
      !cut_ && (names == TreeRequest::kMaxNames || names_.size() + name.size() > kMaxNameBytes);
  ended_ = too_large_ || (cut_ && !counts_all_);
  if (cut_ || too_large_) return false;
  ++(open_.empty() ? roots_ : nodes_[open_.back().node].children);
  nodes_.push_back({.name_begin = names_.size(), .name_size = name.size()});
  names_.append(name);
  return true;
}

void TreeStream::TakeHiddenKey(CommandContext& context) {
  VARVE_ASSERT(!open_.empty());
  Node& directory = nodes_[open_.back().node];
  if (!request_.sizes) {
    (void)context.SliceSpent(kStepsPerSeek);
    return SkipDirectory();
  }
  if (!counts_all_ && directory.keys == kMostCounted) {
    (void)context.SliceSpent(kStepsPerSeek);
    Estimate(context, &directory);
    return SkipDirectory();
  }
  CountKey();
}

void TreeStream::CountKey() {
  VARVE_ASSERT(!open_.empty());
  Node& directory = nodes_[open_.back().node];
  ++directory.keys;
  directory.bytes += cursor_.key().size() + cursor_.value_size();
  cursor_.Step();
}

void TreeStream::SkipDirectory() {
  const std::string behind = PrefixRange(std::string(request_.prefix) + path_).upper;
  if (behind.empty()) {
    ended_ = true;
  } else {
    cursor_.SkipTo(behind);
  }
}

void TreeStream::CloseDirectory(CommandContext& context) {
  VARVE_ASSERT(!open_.empty() && open_.back().path_size == path_.size());
  Node& directory = nodes_[open_.back().node];
  if (cut_ && request_.sizes && !counts_all_) Estimate(context, &directory);
  open_.pop_back();
  path_.resize(open_.empty() ? 0 : open_.back().path_size);
  if (open_.empty()) return;
  Node& parent = nodes_[open_.back().node];
  parent.keys += directory.keys;
  parent.bytes += directory.bytes;
}

void TreeStream::Estimate(CommandContext& context, Node* directory) {
  RangeSize sum;
  const KeyRange keys = PrefixRange(std::string(request_.prefix) + path_);
  for (const KeyRange& part : CutRanges(keys, cursor_.keys().ranges)) {
    const RangeSize size =
        context.server.store->EstimateSize(context.space(), part.lower, part.upper);
    sum.keys += size.keys;
    sum.bytes += size.bytes;
  }
  directory->keys = std::max(directory->keys, sum.keys);
  directory->bytes = std::max(directory->bytes, sum.bytes);
}

ReplyStream::Progress TreeStream::Produce(CommandContext& context, size_t budget) {
  if (!is_collected_) {
    counts_all_ = request_.sizes && !EstimatesSizes(context);
    const RangeCursor::Slice slice(&cursor_, context);
    if (!Collect(context)) return Progress::kMore;
    is_collected_ = true;
    if (!cursor_.status().ok()) {
      context.Fail(cursor_.status());
      return Progress::kDone;
    }
  }
  if (too_large_) {
    context.reply.Error(fmt::format(
        "ERR the tree has more than {} names or {} bytes of names: use DEPTH, LIMIT or CHILDREN",
        TreeRequest::kMaxNames, kMaxNameBytes));
    return Progress::kDone;
  }
  return Send(context, budget) ? Progress::kDone : Progress::kMore;
}

bool TreeStream::Send(CommandContext& context, size_t budget) {
  if (sent_ == 0) context.reply.Array(roots_);
  for (size_t bytes = 0; sent_ < nodes_.size() && bytes < budget; ++sent_) {
    const Node& node = nodes_[sent_];
    context.reply.Array(request_.sizes ? 4 : 2);
    context.reply.Bulk(std::string_view(names_).substr(node.name_begin, node.name_size));
    if (request_.sizes) {
      context.reply.Integer(static_cast<int64_t>(node.keys));
      context.reply.Integer(static_cast<int64_t>(node.bytes));
    }
    context.reply.Array(node.children);
    bytes += node.name_size + kBytesPerNode;
  }
  return sent_ == nodes_.size();
}

}  // namespace varve
