#include "benchmark/server/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "benchmark/process.h"

namespace varve::bench {
namespace {

constexpr size_t kKeyDigits = 12;
constexpr std::string_view kOk = "+OK\r\n";
constexpr size_t kLongestInteger = 24;  // with ':' and the end of the line

// "00", "01", ... "99".
constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

void WriteDigits(uint64_t number, size_t pairs, char* end) {
  for (; pairs > 0; --pairs, number /= 100) std::memcpy(end -= 2, &kPairs[2 * (number % 100)], 2);
}

uint64_t ReadDigits(const char* end) {
  uint64_t number = 0;
  for (const char* at = end - kKeyDigits; at < end; ++at)
    number = number * 10 + static_cast<uint64_t>(*at - '0');
  return number;
}

// The size of a value, or key, as a reply has it.
size_t BulkSize(size_t size) { return fmt::formatted_size("${}\r\n", size) + size + 2; }

std::string Request(const std::vector<std::string>& words) {
  std::string request = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) request += BulkString(word);
  return request;
}

std::vector<size_t> PlacesOf(const std::string& wanted, const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    places.push_back(at);
  return places;
}

// Makes the forms of one load.
class FormMaker {
 public:
  FormMaker(const Load& load, const std::string& key)
      : load_(load), key_(key), value_(load.value_size, 'v') {
    const size_t known = std::min(value_.size(), key_.size());
    value_.replace(0, known, key_, 0, known);
  }

  Form Set(const std::string& verb, uint64_t keys) const {
    std::vector<std::string> words = {verb};
    for (uint64_t i = 0; i < keys; ++i) words.insert(words.end(), {key_, value_});
    Form form{.request = Request(words), .reply_head = std::string(kOk), .reply_size = kOk.size()};
    const bool values_have_keys = value_.size() >= key_.size();
    const std::vector<size_t> places = PlacesOf(key_, form.request);
    for (size_t i = 0; i < places.size(); ++i) {
      (values_have_keys && i % 2 == 1 ? form.values_at : form.keys_at).push_back(places[i]);
    }
    return form;
  }

  Form Get(const std::string& verb, uint64_t keys) const {
    std::vector<std::string> words(keys + 1, key_);
    words[0] = verb;
    const std::string length = fmt::format("${}\r\n", load_.value_size);
    const std::string array = keys == 1 ? "" : fmt::format("*{}\r\n", keys);
    Form form{
        .request = Request(words), .reply = Form::Reply::kValues, .reply_head = array + length};
    form.keys_at = PlacesOf(key_, form.request);
    form.first_at = form.reply_head.size();
    form.stride = BulkSize(load_.value_size);
    form.reply_size = array.size() + keys * form.stride;
    return form;
  }

  static Form Taking(Form::Key key, Form form) {
    form.key = key;
    return form;
  }

  Form GetAndSet() const {
    Form form = Get("GET", 1);
    const size_t get_size = form.request.size();
    const Form set = Set("SET", 1);
    form.request += set.request;
    for (const size_t at : set.keys_at) form.values_at.push_back(get_size + at);
    for (const size_t at : set.values_at) form.values_at.push_back(get_size + at);
    form.reply_size += kOk.size();
    return form;
  }

  Form Increment() const {
    const std::string counter = "ctr" + key_.substr(3);
    Form form{
        .request = Request({"INCR", counter}), .reply = Form::Reply::kInteger, .reply_head = ":"};
    form.keys_at = PlacesOf(counter, form.request);
    return form;
  }

  Form Range(uint64_t entries) const {
    Form form{.request = Request({"RANGE", "[" + key_, "+", "LIMIT", "0", std::to_string(entries)}),
              .reply = Form::Reply::kEntries,
              .entries = entries,
              .reply_head = fmt::format("*{}\r\n${}\r\n", 2 * entries, key_.size())};
    form.keys_at = PlacesOf(key_, form.request);
    form.first_at = form.reply_head.size();
    form.stride = BulkSize(key_.size()) + BulkSize(load_.value_size);
    form.reply_size = fmt::formatted_size("*{}\r\n", 2 * entries) + entries * form.stride;
    return form;
  }

  // Ranges of every length that a scan may have, and a SET.
  std::vector<Form> Scans() const {
    std::vector<Form> forms;
    for (uint64_t entries = 1; entries <= kMostScanned; ++entries) forms.push_back(Range(entries));
    forms.push_back(Taking(Form::Key::kNew, Set("SET", 1)));
    return forms;
  }

  std::vector<Form> All() const {
    switch (load_.operation) {
      case Operation::kSet:
        return {Set("SET", 1)};
      case Operation::kGet:
        return {Get("GET", 1)};
      case Operation::kMultiSet:
        return {Set("MSET", load_.keys_a_call)};
      case Operation::kMultiGet:
        return {Get("MGET", load_.keys_a_call)};
      case Operation::kIncrement:
        return {Increment()};
      case Operation::kRange:
        return {Range(kRangeEntries)};
      case Operation::kMixed:
        return {Get("GET", 1), Set("SET", 1)};
      case Operation::kLateReads:
        return {Taking(Form::Key::kLate, Get("GET", 1)), Taking(Form::Key::kNew, Set("SET", 1))};
      case Operation::kScans:
        return Scans();
      case Operation::kModify:
        return {Get("GET", 1), GetAndSet()};
    }
    return {};
  }

 private:
  const Load& load_;
  const std::string& key_;
  std::string value_;
};

}  // namespace

std::string BulkString(std::string_view text) {
  return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

std::string LoadKey(uint64_t number, size_t key_size) {
  return fmt::format("key:{:0{}}", number, key_size - 4);
}

namespace {

// Returns a number that is above that of each key.
uint64_t MostKeys(const Load& load) {
  const bool inserts =
      load.operation == Operation::kLateReads || load.operation == Operation::kScans;
  constexpr uint64_t kMostInserts = 1'000'000'000;
  return load.keys + (inserts ? kMostInserts : 0);
}

}  // namespace

Exchange::Exchange(const Load& load)
    : load_(load),
      random_(load.keys + static_cast<uint64_t>(load.pipeline) + load.seed * 1'000'003),
      first_key_(LoadKey(0, load.key_size)),
      forms_(FormMaker(load_, first_key_).All()),
      digit_pairs_((std::to_string(MostKeys(load) - 1).size() + 1) / 2),
      checks_values_(load.check_values && load.value_size >= first_key_.size()),
      next_insert_(load.inserted),
      acknowledged_inserts_(load.inserted) {
  if (load_.choice == KeyChoice::kZipfian) zipfian_.emplace(load_.keys);
  for (const Form& form : forms_)
    reply_room_ = std::max({reply_room_, form.reply_size, kLongestInteger});
  for (const Form& form : forms_) {
    if (form.entries > load_.keys) Fail("a RANGE needs more keys than that");
  }
}

uint64_t Exchange::DrawLate() {
  const uint64_t inserted = acknowledged_inserts_;
  const uint64_t age = zipfian_ ? zipfian_->Draw(&random_) : random_.Below(load_.keys + inserted);
  return load_.keys + inserted - 1 - age;
}

void Exchange::InsertIsAcknowledged(uint64_t insert) {
  const auto place = [&](uint64_t number) { return static_cast<size_t>(number - load_.inserted); };
  if (acknowledged_.size() <= place(insert)) acknowledged_.resize(place(insert) + 1);
  acknowledged_[place(insert)] = true;
  while (place(acknowledged_inserts_) < acknowledged_.size() &&
         acknowledged_[place(acknowledged_inserts_)])
    ++acknowledged_inserts_;
}

uint64_t Exchange::NextNumber(const Form& form) {
  if (form.key == Form::Key::kNew) return load_.keys + next_insert_++;
  if (form.key == Form::Key::kLate) return DrawLate();
  const uint64_t bound =
      form.reply == Form::Reply::kEntries ? load_.keys - form.entries + 1 : load_.keys;
  switch (load_.choice) {
    case KeyChoice::kUniform:
      return random_.Below(bound);
    case KeyChoice::kZipfian:
      return Spread(zipfian_->Draw(&random_), bound);
    case KeyChoice::kInOrder:
      return next_++ % bound;
    case KeyChoice::kShuffled:
      return Spread(next_++ % bound, bound);
  }
  return 0;
}

void Exchange::Address(const Form& form, char* request) {
  const size_t key_size = first_key_.size();
  const size_t copies = form.values_at.size() / form.keys_at.size();
  for (size_t i = 0; i < form.keys_at.size(); ++i) {
    const uint64_t number = NextNumber(form);
    char* const key = request + form.keys_at[i];
    WriteDigits(number, digit_pairs_, key + key_size);
    for (size_t copy = 0; copy < copies; ++copy)
      std::memcpy(request + form.values_at[i * copies + copy], key, key_size);
    if (form.reply == Form::Reply::kInteger && load_.counters != nullptr)
      expected_sum_ += ++(*load_.counters)[number];
  }
}

size_t Exchange::Take(const Form& form, std::string_view received, const char* request) {
  const size_t known = std::min(received.size(), form.reply_head.size());
  if (std::memcmp(received.data(), form.reply_head.data(), known) != 0)
    Refuse(received, form, request);
  if (form.reply == Form::Reply::kInteger) {
    const size_t end = received.find('\n');
    if (end == std::string_view::npos) return 0;
    TakeInteger(received.substr(1, end - 2), form, request);
    return end + 1;
  }
  if (received.size() < form.reply_size) return 0;
  if (form.key == Form::Key::kNew)
    InsertIsAcknowledged(ReadDigits(request + form.keys_at[0] + first_key_.size()) - load_.keys);
  if (checks_values_ && form.reply == Form::Reply::kValues)
    CheckValues(form, received.data(), request);
  if (checks_values_ && form.reply == Form::Reply::kEntries)
    CheckEntries(form, received.data(), request);
  return form.reply_size;
}

void Exchange::CheckValues(const Form& form, const char* reply, const char* request) const {
  const char* value = reply + form.first_at;
  for (size_t i = 0; i < form.keys_at.size(); ++i, value += form.stride) {
    if (std::memcmp(value, request + form.keys_at[i], first_key_.size()) == 0) continue;
    Refuse({reply, form.reply_size}, form, request);
  }
}

// That the first key is the one that was asked for, and the last one so many on; of one reply in 16
// all that is between.
void Exchange::CheckEntries(const Form& form, const char* reply, const char* request) {
  constexpr uint64_t kInFull = 16;
  const size_t key_size = first_key_.size();
  const size_t key_to_value = fmt::formatted_size("\r\n${}\r\n", load_.value_size) + key_size;
  const uint64_t first = ReadDigits(request + form.keys_at[0] + key_size);
  const uint64_t to_last = std::max<uint64_t>(1, form.entries - 1);
  const uint64_t step = ranges_++ % kInFull == 0 ? 1 : to_last;
  for (uint64_t i = 0; i < form.entries; i += step) {
    const char* const key = reply + form.first_at + i * form.stride;
    if (ReadDigits(key + key_size) == first + i &&
        std::memcmp(key, key + key_to_value, key_size) == 0)
      continue;
    Refuse({reply, form.reply_size}, form, request);
  }
}

void Exchange::TakeInteger(std::string_view line, const Form& form, const char* request) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || end != line.data() + line.size() || number == 0)
    Refuse(line, form, request);
  received_sum_ += number;
}

void Exchange::CheckTotals() const {
  if (load_.counters == nullptr || received_sum_ == expected_sum_) return;
  Fail(fmt::format("{} lost increments: their replies add up to {} instead of {}", load_.server,
                   received_sum_, expected_sum_));
}

void Exchange::Refuse(std::string_view reply, const Form& form, const char* request) const {
  Fail(fmt::format("{} gave a wrong reply for {}: {}", load_.server,
                   std::string_view(request + form.keys_at[0], first_key_.size()),
                   reply.substr(0, 200)));
}

}  // namespace varve::bench
