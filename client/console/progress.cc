#include "client/console/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client/console/output.h"
#include "client/console/text.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr uint64_t kUpdatesALook = 64;
constexpr uint64_t kBytesALook = uint64_t{1} << 20;
constexpr std::chrono::milliseconds kPause{150};
constexpr size_t kBarWidth = 24;

}  // namespace

Progress::Progress(std::string_view verb, uint64_t total, bool always)
    : verb_(verb),
      total_(total),
      shown_(always || isatty(STDERR_FILENO) != 0),
      begun_(Clock::now()),
      next_(begun_) {}

std::string Progress::Render(uint64_t done, uint64_t keys, uint64_t bytes, double seconds) const {
  seconds = std::max(seconds, 0.001);
  std::string text = verb_;
  const double share =
      total_ == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  if (total_ > 0) {
    const auto filled = static_cast<size_t>(share * static_cast<double>(kBarWidth));
    text += fmt::format(" [{}{}] {:3.0f}%", std::string(filled, '#'),
                        std::string(kBarWidth - filled, '.'), share * 100);
  }
  const std::string amount = HumanBytes(static_cast<double>(bytes));
  if (keys > 0) {
    text += fmt::format("  {} keys  {}  {:.0f} keys/s", keys, amount,
                        static_cast<double>(keys - start_.keys) / seconds);
  } else {
    text += "  " + amount;
  }
  text += fmt::format("  {}/s", HumanBytes(static_cast<double>(bytes - start_.bytes) / seconds));
  const double rate = static_cast<double>(done - start_.done) / seconds;
  const double left = static_cast<double>(total_) - static_cast<double>(done);
  if (rate > 0 && share > 0.01 && left > 0) text += fmt::format("  {:.0f} s left", left / rate);
  return text;
}

void Progress::Begin() {
  if (shown_) Draw();
}

void Progress::Update(uint64_t done, uint64_t keys, uint64_t bytes) {
  last_ = {done, keys, bytes};
  if (!shown_ || (++updates_ % kUpdatesALook != 0 && bytes - looked_at_ < kBytesALook)) return;
  looked_at_ = bytes;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  Draw();
}

void Progress::Draw() {
  on_line_ = true;
  // A longer line would wrap, and stay.
  const size_t columns = TerminalWidth(STDERR_FILENO).value_or(SIZE_MAX);
  fmt::print(stderr, "\r{}\x1b[K",
             Fitted(Render(last_.done, last_.keys, last_.bytes, elapsed().count()), columns - 1));
  std::fflush(stderr);
}

void Progress::Finish() {
  if (!on_line_) return;
  Draw();
  fmt::print(stderr, "\n");
  on_line_ = false;
}

}  // namespace varve
