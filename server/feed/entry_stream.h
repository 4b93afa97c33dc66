// The change feed as Redis' clients know streams: XREAD, XRANGE and XREVRANGE of the key
// "varve:changes" answer one entry for each operation, whose id is the operation's version with
// "-0" behind it. XINFO STREAM shows the first and the last of them.
//
// Thread-safety: as ChangeStream.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "server/feed/change_stream.h"

namespace varve {

inline constexpr std::string_view kChangesKey = "varve:changes";

// Reads the id behind which a client wants to read: "version-0", "version", "0" (the oldest that is
// retained) or "$" (the newest). InvalidArgument, with the reply's words behind "ERR": it is none.
absl::Status ParseEntryId(std::string_view id, ChangeRequest* request);

// The entries of an interval are those with versions in (since, last].
struct EntryInterval {
  SequenceNumber since = kNoSequence;  // kNoSequence: from the oldest that is retained
  SequenceNumber last = kMaxSequence;
};

// Reads the ends of an interval: an id, "(" and an id that does not belong to it, "-" or "+".
// InvalidArgument, with the reply's words behind "ERR": they are none.
absl::StatusOr<EntryInterval> ParseEntryInterval(std::string_view start, std::string_view end);

// Returns the id of the entry that an operation of that version has.
std::string EntryId(SequenceNumber version);

// XREAD and XRANGE: the oldest entries in (start.since, start.last], in order.
class EntryStream final : public ChangeStream {
 public:
  enum class Form : uint8_t {
    kStreams,  // the stream's name and its entries; null where there are none
    kEntries,  // the entries alone
  };

  EntryStream(CommandContext& context, Arguments arguments, ChangeStart start,
              const ChangeRequest& request, Form form)
      : ChangeStream(context, arguments, start, request),
        form_(form),
        behind_(start.since),
        last_(start.last),
        reply_(&collected_, context.client.protocol) {}

 private:
  bool Add(const Change& change, absl::Span<const ShownOperation> operations) override;
  bool empty() const override { return entries_ == 0; }
  void Answer(CommandContext& context, SequenceNumber position) override;

  bool IsFull() const {
    return entries_ >= request().count.value_or(kMostCommits) || collected_.size() >= kMostBytes;
  }

  const Form form_;
  const SequenceNumber behind_;  // the operations that the client has, perhaps a part of a commit
  const SequenceNumber last_;
  ByteBuffer collected_;
  RespWriter reply_;
  size_t entries_ = 0;
};

// XREVRANGE: the newest entries in (start.since, start.last], newest first.
//
// Blocks of changes are read forward. So the stream reads the feed in windows from the end on, each
// at least twice as long as the one behind it, and holds the newest entries of a window that may
// still belong to the reply. What is read is at most about twice what is looked at.
class NewestEntryStream : public ChangeStream {
 public:
  // Requires: start.since < start.last, and that is no later than the newest version. `first` is
  // the oldest position from which a reader can start.
  NewestEntryStream(CommandContext& context, Arguments arguments, ChangeStart start,
                    SequenceNumber first, const ChangeRequest& request);

 protected:
  // `part` is what the stream looks at before the windows.
  NewestEntryStream(CommandContext& context, Arguments arguments, ChangeStart part,
                    EntryInterval interval, SequenceNumber first, const ChangeRequest& request);

  bool Add(const Change& change, absl::Span<const ShownOperation> operations) override;
  bool BeginPart(ChangeStart* start) override;
  void Answer(CommandContext& context, SequenceNumber position) override;

  // Returns the entries that were found, in RESP, newest first.
  const ByteBuffer& collected() const { return collected_; }
  int protocol() const { return protocol_; }

 private:
  // An error fails the reply: what is behind it would be missing from the middle.
  bool empty() const override { return true; }
  void BeginWindow(SequenceNumber last, ChangeStart* start);
  void Hold(std::string entry);

  const int protocol_;
  const SequenceNumber first_;
  const EntryInterval interval_;
  const size_t wanted_;
  EntryInterval window_;
  uint64_t window_size_ = 0;      // of the next one; 0: there was none
  std::deque<std::string> held_;  // the newest entries of the window
  size_t held_bytes_ = 0;
  ByteBuffer collected_;  // of the windows behind it, newest first
  size_t entries_ = 0;
  bool is_full_ = false;
};

// XINFO STREAM: how long the stream is, its first entry and its last one.
class EntryInfoStream final : public NewestEntryStream {
 public:
  EntryInfoStream(CommandContext& context, Arguments arguments, ChangeStart start,
                  const ChangePositions& positions, const ChangeRequest& request)
      : NewestEntryStream(context, arguments, start, {.since = start.since, .last = start.last},
                          positions.first, request),
        positions_(positions) {}

 private:
  bool Add(const Change& change, absl::Span<const ShownOperation> operations) override;
  bool BeginPart(ChangeStart* start) override;
  void Answer(CommandContext& context, SequenceNumber position) override;

  const ChangePositions positions_;
  bool looks_for_first_ = true;
  SequenceNumber first_version_ = kNoSequence;
  std::string first_entry_;  // empty: there is none
};

}  // namespace varve
