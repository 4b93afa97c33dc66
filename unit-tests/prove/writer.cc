#include "unit-tests/prove/writer.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"

namespace varve::prove {
namespace {

constexpr size_t kMaxComplaintsOfOne = 5;

// Bytes to fill values with; two values of different steps begin at different places of it.
const std::string& Filler() {
  static const std::string* const filler = [] {
    auto* bytes = new std::string(512u << 10, '\0');
    std::mt19937 random(1);
    for (char& byte : *bytes) byte = static_cast<char>(random());
    return bytes;
  }();
  return *filler;
}

std::string Describe(const std::optional<Content>& content) {
  if (!content.has_value()) return "nothing";
  if (content->counter) return fmt::format("the count {}", content->number);
  return fmt::format("the {} bytes of step {}", content->size, content->number);
}

}  // namespace

std::string Content::Text() const {
  std::string text = fmt::format("{}", number);
  if (counter) return text;
  text.insert(0, "s");
  text += ':';
  const size_t head = text.size();
  if (size <= head) return text;
  text.append(Filler(), number * 7919 % (Filler().size() / 2), size - head);
  return text;
}

std::optional<Content> Content::Of(std::string_view text) {
  Content content;
  content.counter = !text.starts_with('s');
  if (!content.counter) content.size = static_cast<uint32_t>(text.size());
  const char* const begin = text.data() + (content.counter ? 0 : 1);
  if (std::from_chars(begin, text.data() + text.size(), content.number).ec != std::errc())
    return std::nullopt;
  if (content.Text() != text) return std::nullopt;
  return content;
}

Writer::Writer(int id, uint64_t seed)
    : prefix_(fmt::format("w{}:", id)), random_(seed), base_(kKeys), planned_(kKeys) {}

std::string Writer::Key(size_t index) const { return fmt::format("{}{:04}", prefix_, index); }

size_t Writer::RandomKey() { return kCounters + random_() % (kKeys - kCounters); }

Content Writer::RandomContent(uint32_t largest) {
  const uint64_t kind = random_() % 1000;
  uint32_t size = 12 + static_cast<uint32_t>(random_() % 300);
  if (kind < 100) size = 12 + static_cast<uint32_t>(random_() % 8000);
  if (kind == 0) size = 12 + static_cast<uint32_t>(random_() % (200u << 10));
  Content content{.size = std::min(size, largest), .number = number_};
  content.size = static_cast<uint32_t>(content.Text().size());
  return content;
}

std::vector<std::string> Writer::Next() {
  ++number_;
  Step step;
  std::vector<std::string> arguments;
  const uint64_t kind = random_() % 100;
  if (kind < 45) {
    arguments = Set(&step);
  } else if (kind < 58) {
    arguments = SetMany(&step);
  } else if (kind < 70) {
    arguments = Delete(&step);
  } else if (kind < 73) {
    arguments = DeleteRange(&step);
  } else if (kind < 80) {
    arguments = Count(&step, 1 + random_() % (kCounters - 1));
  } else if (kind < 87) {
    arguments = Count(&step, 0);
  } else if (kind < 94) {
    arguments = SetConditionally(&step);
  } else {
    arguments = Rename(&step);
  }
  undo_.clear();
  for (const Effect& effect : step.effects) undo_.push_back({effect.key, planned_[effect.key]});
  Apply(step, &planned_);
  steps_.push_back(std::move(step));
  return arguments;
}

std::vector<std::string> Writer::Set(Step* step) {
  const size_t key = RandomKey();
  const Content content = RandomContent();
  step->effects.push_back({static_cast<uint32_t>(key), content});
  return {"SET", Key(key), content.Text()};
}

std::vector<std::string> Writer::SetMany(Step* step) {
  std::vector<std::string> arguments = {"MSET"};
  const size_t first = RandomKey();
  for (size_t i = 0, pairs = 2 + random_() % 7; i < pairs; ++i) {
    const size_t key = kCounters + (first + i * 53) % (kKeys - kCounters);
    const Content content = RandomContent(8000);
    step->effects.push_back({static_cast<uint32_t>(key), content});
    arguments.push_back(Key(key));
    arguments.push_back(content.Text());
  }
  return arguments;
}

std::vector<std::string> Writer::Delete(Step* step) {
  std::vector<std::string> arguments = {"DEL"};
  const size_t first = RandomKey();
  step->reply.type = Reply::Type::kInteger;
  for (size_t i = 0, keys = 1 + random_() % 8; i < keys; ++i) {
    const size_t key = kCounters + (first + i * 31) % (kKeys - kCounters);
    arguments.push_back(Key(key));
    if (!planned_[key].has_value()) continue;
    step->effects.push_back({static_cast<uint32_t>(key), std::nullopt});
    ++step->reply.integer;
  }
  return arguments;
}

std::vector<std::string> Writer::DeleteRange(Step* step) {
  const size_t first = RandomKey();
  const size_t end = std::min(kKeys, first + 1 + random_() % 40);
  for (size_t key = first; key < end; ++key) {
    if (planned_[key].has_value())
      step->effects.push_back({static_cast<uint32_t>(key), std::nullopt});
  }
  return {"DELRANGE", "[" + Key(first), "(" + Key(end)};
}

std::vector<std::string> Writer::Count(Step* step, size_t key) {
  const uint64_t now = planned_[key].has_value() ? planned_[key]->number + 1 : 1;
  step->effects.push_back({static_cast<uint32_t>(key), Content{.counter = true, .number = now}});
  step->reply = {Reply::Type::kInteger, static_cast<int64_t>(now)};
  return {"INCR", Key(key)};
}

// Compare-and-set: with the value that is there, or, sometimes, with another one.
std::vector<std::string> Writer::SetConditionally(Step* step) {
  const size_t key = RandomKey();
  const Content content = RandomContent(8000);
  const std::optional<Content>& there = planned_[key];
  std::vector<std::string> arguments = {"SET", Key(key), content.Text()};
  bool holds = true;
  if (!there.has_value()) {
    arguments.emplace_back("NX");
  } else {
    holds = random_() % 4 != 0;
    arguments.emplace_back("IFEQ");
    arguments.push_back(holds ? there->Text() : content.Text());
  }
  if (holds) {
    step->effects.push_back({static_cast<uint32_t>(key), content});
  } else {
    step->reply.type = Reply::Type::kNull;
  }
  return arguments;
}

std::vector<std::string> Writer::Rename(Step* step) {
  const size_t from = RandomKey();
  const size_t to = RandomKey();
  if (!planned_[from].has_value() || from == to) return Set(step);
  step->effects.push_back({static_cast<uint32_t>(to), planned_[from]});
  step->effects.push_back({static_cast<uint32_t>(from), std::nullopt});
  return {"RENAME", Key(from), Key(to)};
}

void Writer::Apply(const Step& step, State* state) {
  for (const Effect& effect : step.effects) (*state)[effect.key] = effect.content;
}

bool Writer::Acknowledge(const Reply& reply, Clock::time_point now, std::string* complaint) {
  if (reply.is_error()) {
    if (acknowledged_ + 1 == steps_.size() &&
        reply.text.find(kRefusalForNow) != std::string::npos) {
      for (const Effect& effect : undo_) planned_[effect.key] = effect.content;
      steps_.pop_back();
      ++refusals_;
      return true;
    }
    if (error_.empty()) {
      error_ = reply.text;
      error_time_ = now;
    }
    return true;
  }
  if (!error_.empty()) {
    // What found nothing to change (DEL of what was never set) is no promise.
    if (reply.is_null() || (reply.type == Reply::Type::kInteger && reply.integer == 0)) return true;
    *complaint = fmt::format("{}step {} was acknowledged behind the error \"{}\"", prefix_,
                             acknowledged_, error_);
    return false;
  }
  const Expected& expected = steps_[acknowledged_].reply;
  if (reply.type != expected.type ||
      (reply.type == Reply::Type::kInteger && reply.integer != expected.integer)) {
    *complaint = fmt::format("{}step {} was answered {} \"{}\" {} instead of {} {}", prefix_,
                             acknowledged_, static_cast<int>(reply.type), reply.text, reply.integer,
                             static_cast<int>(expected.type), expected.integer);
    return false;
  }
  ++acknowledged_;
  if (acknowledged_times_.empty() || acknowledged_times_.back().time != now) {
    acknowledged_times_.push_back({acknowledged_, now});
  } else {
    acknowledged_times_.back().steps = acknowledged_;
  }
  return true;
}

uint64_t Writer::StepsUntilCount(uint64_t value) const {
  if (value <= (base_[0].has_value() ? base_[0]->number : 0)) return 0;
  for (uint64_t i = 0; i < steps_.size(); ++i) {
    for (const Effect& effect : steps_[i].effects) {
      if (effect.key == 0 && effect.content->number == value) return i + 1;
    }
  }
  return steps_.size() + 1;  // more than was ever sent
}

uint64_t Writer::AcknowledgedBefore(Clock::time_point moment) const {
  uint64_t steps = 0;
  for (const Moment& each : acknowledged_times_) {
    if (each.time < moment) steps = each.steps;
  }
  return steps;
}

Writer::Clock::time_point Writer::SentAt(uint64_t step) const {
  Clock::time_point time = Clock::time_point::min();
  for (const Moment& each : sent_times_) {
    if (each.steps <= step) time = each.time;
  }
  return time;
}

Writer::Clock::time_point Writer::LastChangeSentAt() const {
  for (uint64_t step = acknowledged_; step > 0; --step) {
    if (!steps_[step - 1].effects.empty()) return SentAt(step - 1);
  }
  return Clock::time_point::min();
}

Writer::Clock::time_point Writer::AcknowledgedAt(uint64_t step) const {
  for (const Moment& each : acknowledged_times_) {
    if (each.steps > step) return each.time;
  }
  return Clock::time_point::max();
}

Verdict Writer::Check(const Pairs& pairs, uint64_t least) const {
  Verdict verdict;
  State found(kKeys);
  size_t known = 0;
  for (size_t key = 0; key < kKeys; ++key) {
    const auto pair = pairs.find(Key(key));
    if (pair == pairs.end()) continue;
    ++known;
    found[key] = Content::Of(pair->second);
    if (found[key].has_value()) continue;
    ++verdict.torn;
    verdict.complaints.push_back(fmt::format("{} has {} bytes that nobody wrote: {}", pair->first,
                                             pair->second.size(), pair->second.substr(0, 40)));
  }
  if (known != pairs.size())
    verdict.complaints.push_back(fmt::format("{}: keys that nobody wrote", prefix_));
  if (!verdict.good()) return verdict;

  State state = base_;
  size_t different = 0;
  for (size_t key = 0; key < kKeys; ++key) different += state[key] == found[key] ? 0 : 1;
  std::optional<uint64_t> too_early;
  for (uint64_t steps = 0;; ++steps) {
    if (steps < least && different == 0) too_early = steps;
    if (steps >= least && different == 0) {
      verdict.survived = steps;
      verdict.survived_unasked = steps - least;
      return verdict;
    }
    if (steps == steps_.size()) break;
    for (const Effect& effect : steps_[steps].effects) {
      different -= state[effect.key] == found[effect.key] ? 0 : 1;
      state[effect.key] = effect.content;
      different += state[effect.key] == found[effect.key] ? 0 : 1;
    }
  }
  if (too_early.has_value()) {
    verdict.lost = least - *too_early;
    verdict.complaints.push_back(fmt::format(
        "{} is as it was after {} steps, but {} must have survived", prefix_, *too_early, least));
  } else {
    Complain(found, least, &verdict);
  }
  return verdict;
}

void Writer::Complain(const State& found, uint64_t least, Verdict* verdict) const {
  State state = base_;
  for (uint64_t i = 0; i < std::min<uint64_t>(least, steps_.size()); ++i) Apply(steps_[i], &state);
  std::vector<bool> allowed(kKeys);
  for (size_t key = 0; key < kKeys; ++key) allowed[key] = state[key] == found[key];
  for (uint64_t i = least; i < steps_.size(); ++i) {
    for (const Effect& effect : steps_[i].effects) {
      if (effect.content == found[effect.key]) allowed[effect.key] = true;
    }
  }
  for (size_t key = 0; key < kKeys; ++key) {
    if (allowed[key]) continue;
    ++verdict->lost;
    if (verdict->complaints.size() < kMaxComplaintsOfOne) {
      verdict->complaints.push_back(
          fmt::format("{} has {}, which is not what it had after {} steps, {}, nor later", Key(key),
                      Describe(found[key]), least, Describe(state[key])));
    }
  }
  if (!verdict->good()) return;
  ++verdict->torn;
  verdict->complaints.push_back(fmt::format(
      "{}: each key is as it was at some moment between steps {} and {}, but not all at one",
      prefix_, least, steps_.size()));
}

void Writer::GoOnFrom(uint64_t steps) {
  for (uint64_t i = 0; i < steps; ++i) Apply(steps_[i], &base_);
  planned_ = base_;
  steps_.clear();
  sent_times_.clear();
  acknowledged_times_.clear();
  acknowledged_ = 0;
  error_.clear();
}

Pairs Writer::Beginning() const {
  Pairs pairs;
  for (size_t key = 0; key < kKeys; ++key) {
    if (base_[key].has_value()) pairs[Key(key)] = base_[key]->Text();
  }
  return pairs;
}

}  // namespace varve::prove
