// The progress of long work, shown on standard error as a bar that is drawn anew several times a
// second.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

class Progress {
 public:
  // `total` counts what Update() is told as done; 0: not known. Shown on a terminal only, unless
  // `always`.
  Progress(std::string_view verb, uint64_t total, bool always);
  ~Progress() { Finish(); }

  // Shows the line before there is anything to tell.
  void Begin();
  void set_total(uint64_t total) { total_ = total; }
  // Counts the work of an earlier run as done, but not for the rate.
  void StartFrom(uint64_t done, uint64_t keys, uint64_t bytes) {
    start_ = last_ = {done, keys, bytes};
  }
  // `done` of the total; `keys` (0: not shown) and `bytes` for people. Cheap: looks at the clock
  // only now and then.
  void Update(uint64_t done, uint64_t keys, uint64_t bytes);
  // Updates work of which nothing but bytes counts, of `total` in all.
  void UpdateBytes(uint64_t done, uint64_t total) {
    set_total(total);
    Update(done, 0, done);
  }
  // Draws what was told last, and leaves the line.
  void Finish();
  std::chrono::duration<double> elapsed() const { return Clock::now() - begun_; }

  // One line of text for what is done, without line end.
  std::string Render(uint64_t done, uint64_t keys, uint64_t bytes, double seconds) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Work {
    uint64_t done = 0;
    uint64_t keys = 0;
    uint64_t bytes = 0;
  };

  void Draw();

  const std::string verb_;
  uint64_t total_;
  const bool shown_;
  const Clock::time_point begun_;
  Clock::time_point next_;
  Work start_;
  Work last_;
  uint64_t updates_ = 0;
  uint64_t looked_at_ = 0;  // bytes when it last looked at the clock
  bool on_line_ = false;
};

}  // namespace varve
