#include "db/compression/sample_cover.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kPiece = 250;        // bytes that are chosen together
constexpr size_t kSmallestPart = 10;  // pieces
constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;

// The piece chooser makes the first pass: it counts windows by hash, and chooses pieces of the
// samples. Each object chooses once.
class PieceChooser {
 public:
  explicit PieceChooser(const SampleText& samples)
      : text_(samples.bytes), windows_(text_.size() - kSharedWindow + 1), counters_(kCounters) {
    Count(samples);
  }

  // Returns pieces of at most `most_bytes` together, the best ones at the end.
  std::string Choose(size_t most_bytes) {
    size_t parts = std::max<size_t>(most_bytes / kPiece, 1);
    const size_t part_size = std::max(windows_ / parts, std::min(kSmallestPart * kPiece, windows_));
    parts = windows_ / part_size;
    std::vector<std::string_view> pieces;
    size_t room = most_bytes;
    size_t exhausted = 0;  // parts in a row that have nothing left
    for (size_t part = 0; room >= kSharedWindow && exhausted < parts; part = (part + 1) % parts) {
      const size_t begin = part * part_size;
      const std::string_view piece = BestIn(begin, std::min(begin + part_size, windows_), room);
      exhausted = piece.empty() ? exhausted + 1 : 0;
      if (piece.empty()) continue;
      room -= piece.size();
      pieces.push_back(piece);
    }
    std::string cover;
    // A match is the cheaper the nearer to the end it is.
    for (size_t i = pieces.size(); i-- > 0;) cover.append(pieces[i]);
    return cover;
  }

 private:
  static constexpr int kCounterBits = 17;
  static constexpr size_t kCounters = size_t{1} << kCounterBits;

  struct Counter {
    uint32_t last_sample = 0;
    uint16_t samples = 0;   // that have the window; 0: it was taken, or too few have it
    uint16_t in_piece = 0;  // how often the piece at hand has it
  };

  Counter& CounterAt(size_t at) {
    return counters_[DecodeFixed64(&text_[at]) * kMix >> (64 - kCounterBits)];
  }

  // Counts in how many samples each window is.
  void Count(const SampleText& samples) {
    uint32_t sample = 0;
    size_t begin = 0;
    for (const size_t size : samples.sizes) {
      ++sample;
      for (size_t i = 0; i + kSharedWindow <= size; ++i) {
        Counter& counter = CounterAt(begin + i);
        if (counter.last_sample == sample) continue;
        counter.last_sample = sample;
        if (counter.samples < std::numeric_limits<uint16_t>::max()) ++counter.samples;
      }
      begin += size;
    }
    VARVE_ASSERT(begin == text_.size());
    for (Counter& counter : counters_) {
      if (counter.samples < kFewestSharing) counter.samples = 0;
    }
  }

  // Takes the best piece that begins in [begin, end).
  std::string_view BestIn(size_t begin, size_t end, size_t room) {
    constexpr size_t kWindowsOfPiece = kPiece - kSharedWindow + 1;
    uint64_t score = 0, best_score = 0;
    size_t first = begin, best = begin;
    for (size_t at = begin; at < end; ++at) {
      Counter& entered = CounterAt(at);
      if (entered.in_piece++ == 0) score += entered.samples;
      if (at - first >= kWindowsOfPiece) {
        Counter& left = CounterAt(first++);
        if (--left.in_piece == 0) score -= left.samples;
      }
      if (score > best_score) {
        best_score = score;
        best = first;
      }
    }
    for (; first < end; ++first) CounterAt(first).in_piece = 0;
    return best_score == 0 ? std::string_view() : Take(best, room);
  }

  // Takes what counts of the piece at `begin`, and `room` bytes of it at most.
  std::string_view Take(size_t begin, size_t room) {
    size_t end = std::min(begin + kPiece - kSharedWindow + 1, windows_);  // of windows
    while (CounterAt(begin).samples == 0) ++begin;
    while (CounterAt(end - 1).samples == 0) --end;
    const std::string_view piece =
        text_.substr(begin, std::min(end - begin + kSharedWindow - 1, room));
    for (size_t at = begin; at < end; ++at) CounterAt(at).samples = 0;
    return piece;
  }

  const std::string_view text_;
  const size_t windows_;
  std::vector<Counter> counters_;
};

// The shared windows make the second pass: they find out which windows of a text several samples
// share.
class SharedWindows {
 public:
  explicit SharedWindows(std::string_view text) : text_(text), sought_(kSoughtBits) {
    for (size_t at = 0; at + kSharedWindow <= text.size(); ++at)
      windows_.try_emplace(DecodeFixed64(&text[at]));
    Seek();
  }

  // Counts the windows of the text that the sample has. Requires: each sample comes once.
  void Look(std::string_view sample) {
    ++samples_;
    for (size_t at = 0; at + kSharedWindow <= sample.size(); ++at) {
      const uint64_t window = DecodeFixed64(&sample[at]);
      if (!sought_[BitOf(window)]) continue;
      const auto found = windows_.find(window);
      if (found == windows_.end() || found->second.last_sample == samples_) continue;
      found->second.last_sample = samples_;
      ++found->second.samples;
    }
    // After a few samples most windows need no more looking for.
    if (samples_ != seek_again_at_) return;
    seek_again_at_ *= 2;
    Seek();
  }

  // Returns the text without the bytes that are in no shared window.
  std::string Keep() const {
    std::string kept;
    size_t kept_up_to = 0;
    for (size_t at = 0; at + kSharedWindow <= text_.size(); ++at) {
      if (windows_.at(DecodeFixed64(&text_[at])).samples < kFewestSharing) continue;
      const size_t from = std::max(at, kept_up_to);
      kept_up_to = at + kSharedWindow;
      kept.append(text_.substr(from, kept_up_to - from));
    }
    return kept;
  }

 private:
  static constexpr int kBits = 18;
  static constexpr size_t kSoughtBits = size_t{1} << kBits;

  struct Window {
    uint32_t samples = 0;  // no more are counted than have to share it
    uint32_t last_sample = 0;
  };

  static size_t BitOf(uint64_t window) { return window * kMix >> (64 - kBits); }

  // Has the next samples be looked through for the windows that too few have had so far.
  void Seek() {
    sought_.assign(kSoughtBits, false);
    for (const auto& [window, seen] : windows_) {
      if (seen.samples < kFewestSharing) sought_[BitOf(window)] = true;
    }
  }

  const std::string_view text_;
  std::vector<bool> sought_;  // by hash: windows that too few samples had so far
  std::unordered_map<uint64_t, Window> windows_;
  uint32_t samples_ = 0;
  uint32_t seek_again_at_ = 8;
};

}  // namespace

std::string CoverOf(const SampleText& samples, size_t most_bytes) {
  if (samples.bytes.size() < kSharedWindow) return {};
  return SharedPartOf(PieceChooser(samples).Choose(most_bytes), samples);
}

std::string SharedPartOf(std::string_view text, const SampleText& samples) {
  SharedWindows shared(text);
  std::string_view rest = samples.bytes;
  for (const size_t size : samples.sizes) {
    shared.Look(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return shared.Keep();
}

}  // namespace varve
