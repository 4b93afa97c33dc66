#include "server/feed/entry_stream.h"

#include <algorithm>

#include "fmt/format.h"
#include "server/requests/past_point.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kSmallestWindow = 64;  // versions

struct ParsedId {
  uint64_t version = 0;
  std::optional<uint64_t> number;  // behind the dash
};

absl::StatusOr<ParsedId> ParseId(std::string_view id) {
  const size_t dash = id.find('-');
  const std::optional<uint64_t> version = ParseCount(id.substr(0, dash));
  ParsedId parsed{.version = version.value_or(0)};
  if (dash != std::string_view::npos) parsed.number = ParseCount(id.substr(dash + 1));
  if (!version || (dash != std::string_view::npos && !parsed.number))
    return absl::InvalidArgumentError("Invalid stream ID specified as stream command argument");
  return parsed;
}

void WriteEntry(const ShownOperation& shown, RespWriter* reply) {
  const ChangeOperation& operation = *shown.operation;
  const std::string space = SpaceText(operation.space, operation.name);
  const std::string expiry = fmt::to_string(operation.expiry_ms);
  const std::pair<std::string_view, std::string_view> fields[] = {
      {"op", ChangeWord(operation.kind)},
      {"ns", space},
      {"key", shown.key},
      {"value", shown.has_value ? shown.value : std::string_view()},
      {"expires", expiry}};
  reply->Array(2);
  reply->Bulk(EntryId(operation.version));
  reply->Array(2 * std::size(fields));
  for (const auto& [name, value] : fields) {
    reply->Bulk(name);
    reply->Bulk(value);
  }
}

std::string EntryText(const ShownOperation& shown, int protocol) {
  ByteBuffer buffer;
  RespWriter writer(&buffer, protocol);
  WriteEntry(shown, &writer);
  return std::string(buffer.view());
}

// Returns the empty interval in front of what comes behind `start`.
ChangeStart NothingOf(ChangeStart start) {
  start.since = start.last;
  return start;
}

}  // namespace

std::string EntryId(SequenceNumber version) { return fmt::format("{}-0", version); }

absl::Status ParseEntryId(std::string_view id, ChangeRequest* request) {
  using Start = ChangeRequest::Start;
  if (id == "$") {
    request->start = Start::kNow;
    return absl::OkStatus();
  }
  VARVE_ASSIGN_OR_RETURN(const ParsedId parsed, ParseId(id));
  request->start = parsed.version == kNoSequence ? Start::kFirst : Start::kVersion;
  request->since = parsed.version;
  return absl::OkStatus();
}

// The id of an entry has 0 behind the dash. An id with another number lies behind the entry of its
// version. Without a number, as in Redis, a start means 0 and an end the largest one.
absl::StatusOr<EntryInterval> ParseEntryInterval(std::string_view start, std::string_view end) {
  EntryInterval interval;
  if (start == "+") {
    interval.since = kMaxSequence;
  } else if (start != "-") {
    const bool excludes = start.starts_with('(');
    VARVE_ASSIGN_OR_RETURN(const ParsedId id, ParseId(start.substr(excludes ? 1 : 0)));
    const bool has_entry = !excludes && id.number.value_or(0) == 0;
    interval.since = has_entry && id.version > 0 ? id.version - 1 : id.version;
  }
  if (end == "-") {
    interval.last = kNoSequence;
  } else if (end != "+") {
    const bool excludes = end.starts_with('(');
    VARVE_ASSIGN_OR_RETURN(const ParsedId id, ParseId(end.substr(excludes ? 1 : 0)));
    const bool lacks_entry = excludes && id.number == 0;
    interval.last = lacks_entry && id.version > 0 ? id.version - 1 : id.version;
  }
  return interval;
}

// --- XREAD and XRANGE ----------------------------------------------------------------------------

bool EntryStream::Add(const Change& /*change*/, absl::Span<const ShownOperation> operations) {
  for (const ShownOperation& shown : operations) {
    const SequenceNumber version = shown.operation->version;
    if (IsFull()) return true;
    if (version <= behind_ || version > last_) continue;
    WriteEntry(shown, &reply_);
    ++entries_;
  }
  return IsFull();
}

void EntryStream::Answer(CommandContext& context, SequenceNumber /*position*/) {
  RespWriter& reply = context.reply;
  if (form_ == Form::kStreams) {
    if (empty()) return reply.NullArray();
    if (reply.protocol() >= 3) {
      reply.Map(1);
    } else {
      reply.Array(1);
      reply.Array(2);
    }
    reply.Bulk(kChangesKey);
  }
  reply.Array(entries_);
  reply.buffer()->Append(collected_.view());
}

// --- XREVRANGE -----------------------------------------------------------------------------------

NewestEntryStream::NewestEntryStream(CommandContext& context, Arguments arguments,
                                     ChangeStart start, SequenceNumber first,
                                     const ChangeRequest& request)
    : NewestEntryStream(context, arguments, NothingOf(start),
                        {.since = start.since, .last = start.last}, first, request) {}

NewestEntryStream::NewestEntryStream(CommandContext& context, Arguments arguments, ChangeStart part,
                                     EntryInterval interval, SequenceNumber first,
                                     const ChangeRequest& request)
    : ChangeStream(context, arguments, std::move(part), request),
      protocol_(context.client.protocol),
      first_(first),
      interval_(interval),
      wanted_(request.count.value_or(kMostCommits)) {}

void NewestEntryStream::BeginWindow(SequenceNumber last, ChangeStart* start) {
  window_.last = last;
  window_.since = last - std::min<uint64_t>(last, window_size_);
  // What is no longer retained is asked for, and refused, only if the reply needs it.
  if (window_.since < first_ && first_ < last) window_.since = first_;
  window_.since = std::max(window_.since, interval_.since);
  start->since = window_.since;
  start->last = window_.last;
  window_size_ *= 2;
}

bool NewestEntryStream::Add(const Change& /*change*/, absl::Span<const ShownOperation> operations) {
  for (const ShownOperation& shown : operations) {
    const SequenceNumber version = shown.operation->version;
    if (version > window_.since && version <= window_.last) Hold(EntryText(shown, protocol_));
  }
  return false;
}

void NewestEntryStream::Hold(std::string entry) {
  held_bytes_ += entry.size();
  held_.push_back(std::move(entry));
  const auto exceeds = [this] {
    const bool too_large = collected_.size() + held_bytes_ > kMostBytes;
    is_full_ = is_full_ || too_large;
    return entries_ + held_.size() > wanted_ || too_large;
  };
  while (held_.size() > (entries_ == 0 ? 1 : 0) && exceeds()) {
    held_bytes_ -= held_.front().size();
    held_.pop_front();
  }
}

bool NewestEntryStream::BeginPart(ChangeStart* start) {
  if (window_size_ == 0) {
    window_size_ = std::max<uint64_t>(kSmallestWindow, wanted_);
    BeginWindow(interval_.last, start);
    return true;
  }
  entries_ += held_.size();
  for (; !held_.empty(); held_.pop_back()) collected_.Append(held_.back());
  held_bytes_ = 0;
  if (is_full_ || entries_ >= wanted_ || window_.since <= interval_.since) return false;
  BeginWindow(window_.since, start);
  return true;
}

void NewestEntryStream::Answer(CommandContext& context, SequenceNumber /*position*/) {
  context.reply.Array(entries_);
  context.reply.buffer()->Append(collected_.view());
}

// --- XINFO STREAM --------------------------------------------------------------------------------

bool EntryInfoStream::Add(const Change& change, absl::Span<const ShownOperation> operations) {
  if (!looks_for_first_) return NewestEntryStream::Add(change, operations);
  first_version_ = operations.front().operation->version;
  first_entry_ = EntryText(operations.front(), protocol());
  return true;
}

bool EntryInfoStream::BeginPart(ChangeStart* start) {
  if (std::exchange(looks_for_first_, false) && first_entry_.empty()) return false;
  return NewestEntryStream::BeginPart(start);
}

void EntryInfoStream::Answer(CommandContext& context, SequenceNumber /*position*/) {
  RespWriter& reply = context.reply;
  const auto show = [&](std::string_view name, uint64_t figure) {
    reply.Bulk(name);
    reply.Integer(AsInteger(figure));
  };
  const auto show_id = [&](std::string_view name, SequenceNumber version) {
    reply.Bulk(name);
    reply.Bulk(EntryId(version));
  };
  const auto show_entry = [&](std::string_view name, std::string_view entry) {
    reply.Bulk(name);
    entry.empty() ? reply.Null() : reply.buffer()->Append(entry);
  };
  reply.Map(10);
  show("length", positions_.count());
  // Libraries read both figures of Redis' memory, which mean nothing here.
  show("radix-tree-keys", 0);
  show("radix-tree-nodes", 0);
  show_id("last-generated-id", positions_.last);
  show_id("max-deleted-entry-id", positions_.first);
  show("entries-added", positions_.last);
  show_id("recorded-first-entry-id", first_version_);
  show("groups", 0);
  show_entry("first-entry", first_entry_);
  show_entry("last-entry", collected().view());
}

}  // namespace varve
