#include "server/scans/children_stream.h"

#include <algorithm>
#include <utility>

#include "server/access/visible_keys.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// A seek takes as long as so many steps.
constexpr size_t kChildStepsPerSeek = 16;

using Figures = ChildrenRequest::Figures;

}  // namespace

KeyRange ChildrenRequest::Range() const {
  KeyRange range = PrefixRange(prefix);
  if (after.empty()) return range;
  const std::string name = std::string(prefix) + std::string(after);
  if (reverse) {
    range.upper = name;
  } else if (after.ends_with(delimiter)) {
    const std::string behind = PrefixRange(name).upper;
    range.empty = behind.empty();
    range.lower = behind;
  } else {
    range.lower = name + '\0';
  }
  range.empty = range.empty || (!range.upper.empty() && range.lower >= range.upper);
  return range;
}

ChildrenStream::ChildrenStream(SelectedKeys keys, const ChildrenRequest& request)
    : CountedStream(std::move(keys), {.reverse = request.reverse, .keys_only = true},
                    request.limit),
      request_(request) {}

bool ChildrenStream::Find(CommandContext& context) {
  while (!AtEnd() && !context.SliceSpent(cursor_.cost())) {
    if (!cursor_.Valid()) {  // the last directory was counted
      if (!cursor_.status().ok()) return false;
      child_ = std::exchange(directory_, {});
      return true;
    }
    const std::string_view name = cursor_.key().substr(request_.prefix.size());
    if (!directory_.empty()) {
      if (!name.starts_with(directory_)) {
        child_ = std::exchange(directory_, {});
        return true;
      }
      if (counted_ == kMostCounted && request_.figures == Figures::kSizes &&
          EstimatesSizes(context)) {
        LeaveDirectory(context);
        return true;
      }
      figure_ += FigureOfKey();
      ++counted_;
      cursor_.Step();
      continue;
    }
    const size_t delimiter = name.find(request_.delimiter);
    if (name.empty()) {  // the prefix itself is not below it
      cursor_.Step();
    } else if (delimiter == std::string_view::npos) {
      child_.assign(name);
      figure_ = FigureOfKey();
      cursor_.Step();
      return true;
    } else {
      FoundDirectory(context, std::string(name.substr(0, delimiter + request_.delimiter.size())));
      if (directory_.empty()) return true;
    }
  }
  return false;
}

void ChildrenStream::FoundDirectory(CommandContext& context, std::string_view name) {
  directory_.assign(name);
  figure_ = 0;
  counted_ = 0;
  if (!HasFigures()) LeaveDirectory(context);
}

void ChildrenStream::LeaveDirectory(CommandContext& context) {
  child_ = std::exchange(directory_, {});
  const KeyRange keys = PrefixRange(std::string(request_.prefix) + child_);
  if (request_.figures == Figures::kSizes) figure_ = std::max(figure_, SizeOf(context, keys));
  (void)context.SliceSpent(kChildStepsPerSeek);
  if (request_.reverse) {
    cursor_.SkipTo(keys.lower);
  } else if (keys.upper.empty()) {
    ended_ = true;
  } else {
    cursor_.SkipTo(keys.upper);
  }
}

uint64_t ChildrenStream::FigureOfKey() const {
  return request_.figures == Figures::kSizes ? cursor_.key().size() + cursor_.value_size() : 1;
}

uint64_t ChildrenStream::SizeOf(CommandContext& context, const KeyRange& directory) const {
  uint64_t bytes = 0;
  for (const KeyRange& part : CutRanges(directory, cursor_.keys().ranges))
    bytes += context.server.store->EstimateBytes(context.space(), part.lower, part.upper);
  return bytes;
}

void ChildrenStream::Write(RespWriter* writer) const {
  writer->Bulk(child_);
  if (HasFigures()) writer->Integer(static_cast<int64_t>(figure_));
}

}  // namespace varve
