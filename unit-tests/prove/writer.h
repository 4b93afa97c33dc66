// One connection's side of the bargain: what it sent, what was acknowledged, and what may therefore
// be there after a crash.
//
// A writer has keys of its own ("w3:0000" to "w3:0399") and changes them with requests of many
// kinds, of which each is atomic and none leaves the keys as they were in a way that a later one
// would hide. A server executes a connection's requests in order and logs them in that order. So
// after a crash the keys must be as they were after the first n requests, for one n between those
// that had to survive and those that were sent: then nothing is lost, no batch is torn, nothing
// deleted comes back, nothing overtakes.
//
// Values are not kept but described (who wrote them, how long they are) and made again to be
// compared byte by byte. Thread-compatible: one thread sends and receives; Check comes when it is
// done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "type/reply.h"

namespace varve::prove {

// What a value must be. A counter's is its number in decimal; every other begins with the number of
// its step.
struct Content {
  bool counter = false;
  uint32_t size = 0;  // bytes; 0 for counters
  uint64_t number = 0;

  bool operator==(const Content&) const = default;
  std::string Text() const;
  // Nothing if no content has this text.
  static std::optional<Content> Of(std::string_view text);
};

using Pairs = std::map<std::string, std::string, std::less<>>;

struct Verdict {
  uint64_t survived = 0;          // requests since the last check whose effect is there
  uint64_t survived_unasked = 0;  // of them, beyond those that had to
  // Requests that are missing at the end, or keys that are older than they may be.
  uint64_t lost = 0;
  uint64_t torn = 0;                    // keys are each as they may be, but not together
  std::vector<std::string> complaints;  // the first few, in words

  bool good() const { return complaints.empty(); }
};

class Writer {
 public:
  // Part of each refusal that ends by itself.
  static constexpr std::string_view kRefusalForNow = "writes resume when";

  using Clock = std::chrono::steady_clock;

  static constexpr size_t kCounters = 8;  // the first keys; key 0 is counted up and never deleted
  static constexpr size_t kKeys = 400;

  Writer(int id, uint64_t seed);

  const std::string& prefix() const { return prefix_; }
  std::string Key(size_t index) const;

  // The next request, remembered as sent.
  std::vector<std::string> Next();
  // The requests of Next from here on leave at `now` or later.
  void SendingAt(Clock::time_point now) { sent_times_.push_back({steps_.size(), now}); }
  // The reply to the first request that has none yet. False: it is none that the request may have;
  // `complaint` says what is wrong. Errors don't acknowledge: after the first one no other write
  // may be acknowledged. But a refusal "until writes resume" of the only request under way says
  // that nothing was done; then the writer goes on as if it had never been sent.
  [[nodiscard]] bool Acknowledge(const Reply& reply, Clock::time_point now, std::string* complaint);

  uint64_t sent() const { return steps_.size(); }
  uint64_t acknowledged() const { return acknowledged_; }
  // Text of the first error reply, and when it came; empty: there was none.
  const std::string& error() const { return error_; }
  uint64_t refusals() const { return refusals_; }
  Clock::time_point error_time() const { return error_time_; }

  // How many requests must survive because another client was shown key 0 at `value`.
  uint64_t StepsUntilCount(uint64_t value) const;
  // Returns whether the error says that no write will be taken any more.
  bool refused_for_good() const {
    return !error_.empty() && error_.find(kRefusalForNow) == std::string::npos;
  }
  // When the last acknowledged request that changed something was sent, at the earliest; the
  // beginning of time if there is none.
  Clock::time_point LastChangeSentAt() const;
  // How many were acknowledged before `moment`.
  uint64_t AcknowledgedBefore(Clock::time_point moment) const;
  // When the step's request was sent at the earliest.
  Clock::time_point SentAt(uint64_t step) const;
  // When it was acknowledged; the end of time if it wasn't.
  Clock::time_point AcknowledgedAt(uint64_t step) const;

  // Holds what is there against what must be: the state after n steps, `least` <= n <= sent().
  Verdict Check(const Pairs& found, uint64_t least) const;
  // Goes on from the state after `steps` of the steps, which becomes the new beginning.
  void GoOnFrom(uint64_t steps);
  // Returns what is there at the beginning.
  Pairs Beginning() const;

 private:
  using State = std::vector<std::optional<Content>>;
  struct Effect {
    uint32_t key;
    std::optional<Content> content;
  };
  struct Expected {
    Reply::Type type = Reply::Type::kSimple;
    int64_t integer = 0;
  };
  struct Step {
    std::vector<Effect> effects;
    Expected reply;
  };
  struct Moment {
    uint64_t steps;  // sent: those before it; acknowledged: those up to then
    Clock::time_point time;
  };

  static void Apply(const Step& step, State* state);

  size_t RandomKey();
  Content RandomContent(uint32_t largest = 1u << 18);
  std::vector<std::string> Set(Step* step);
  std::vector<std::string> SetMany(Step* step);
  std::vector<std::string> Delete(Step* step);
  std::vector<std::string> DeleteRange(Step* step);
  std::vector<std::string> Count(Step* step, size_t key);
  std::vector<std::string> SetConditionally(Step* step);
  std::vector<std::string> Rename(Step* step);
  // In words, why no state fits.
  void Complain(const State& found, uint64_t least, Verdict* verdict) const;

  const std::string prefix_;
  std::mt19937_64 random_;
  uint64_t number_ = 0;  // of the last step, over the writer's whole life
  State base_;           // before the first of steps_
  State planned_;        // behind the last of them
  std::vector<Step> steps_;
  std::vector<Effect> undo_;  // what the last of them changed, as it was before
  std::vector<Moment> sent_times_;
  std::vector<Moment> acknowledged_times_;
  uint64_t acknowledged_ = 0;
  uint64_t refusals_ = 0;  // of requests that had never been sent, so to speak
  std::string error_;
  Clock::time_point error_time_;
};

}  // namespace varve::prove
