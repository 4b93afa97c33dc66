#include "unit-tests/prove/soak/key_owner.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{120'000};
constexpr uint64_t kShortestLife = 200, kLongestLife = 4000;  // milliseconds
// The server and this client round moments to the millisecond.
constexpr milliseconds kRounding{2};
constexpr size_t kReadTogether = 200;

// Returns for how long a value lives where keys expire.
milliseconds LifeOf(uint64_t number) {
  return milliseconds(kShortestLife + number * 7919 % (kLongestLife - kShortestLife));
}

std::vector<std::string_view> Views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace

ClientOptions ClientOf(uint16_t port, const std::string& place) {
  ClientOptions options{.port = port, .timeout = kPatience, .reconnect_for = milliseconds(0)};
  if (!place.empty() && std::isdigit(static_cast<unsigned char>(place[0])) != 0) {
    options.database = std::stoi(place);
  } else {
    options.namespace_name = place;
  }
  return options;
}

KeyOwner::KeyOwner(OwnerOptions options, Findings* findings)
    : options_(std::move(options)),
      findings_(*findings),
      random_(options_.seed * 1000 + static_cast<uint64_t>(options_.id)),
      states_(options_.keys) {}

void KeyOwner::Run(uint16_t port, const absl::Notification& ended) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(ClientOf(port, options_.place));
  absl::Status status = client.status();
  while (status.ok() && !ended.HasBeenNotified()) {
    status = Round(client->get());
    ended.WaitForNotificationWithTimeout(absl::Microseconds(random_() % 4000));
  }
  findings_.AddStatus(fmt::format("owner {} in {}", options_.id, options_.place), status);
}

absl::Status KeyOwner::Round(Client* client) {
  const Clock::time_point sent = Clock::now();
  for (size_t count = 1 + random_() % options_.depth; count > 0; --count)
    VARVE_RETURN_IF_ERROR(SendOne(client));
  for (; !under_way_.empty(); under_way_.pop_front()) {
    VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Receive());
    VARVE_RETURN_IF_ERROR(Take(under_way_.front(), reply, sent));
    requests_.fetch_add(1, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

// Low indexes are drawn more often than high ones.
size_t KeyOwner::DrawKey() {
  const double drawn = std::generate_canonical<double, 53>(random_);
  return std::min(static_cast<size_t>(drawn * drawn * static_cast<double>(options_.keys)),
                  options_.keys - 1);
}

absl::Status KeyOwner::SendOne(Client* client) {
  const uint64_t kind = random_() % 100;
  Call call;
  call.keys.push_back(DrawKey());
  std::vector<std::string> words;
  if (kind < 40) {
    words = {"GET", OwnedKey(options_.id, call.keys[0])};
  } else if (kind < 50) {
    call.kind = Kind::kDelete;
    words = {"DEL", OwnedKey(options_.id, call.keys[0])};
  } else {
    call.kind = kind < 58 && options_.fate != Fate::kExpires ? Kind::kSetMany : Kind::kSet;
    const size_t more = call.kind == Kind::kSetMany ? 1 + random_() % 5 : 0;
    for (size_t i = 0; i < more; ++i) call.keys.push_back((call.keys.back() + 17) % options_.keys);
    call.first_number = last_number_ + 1;
    words = {call.kind == Kind::kSet ? "SET" : "MSET"};
    for (const size_t key : call.keys) {
      words.push_back(OwnedKey(options_.id, key));
      words.push_back(OwnedValue(options_.filler, words.back(), {options_.id, ++last_number_}));
    }
    if (options_.fate == Fate::kExpires) {
      words.insert(words.end(), {"PX", fmt::to_string(LifeOf(call.first_number).count())});
    }
  }
  under_way_.push_back(std::move(call));
  return client->Send(Views(words));
}

absl::Status KeyOwner::Take(const Call& call, const Reply& reply, Clock::time_point sent) {
  if (reply.is_error()) {
    const bool writes = call.kind == Kind::kSet || call.kind == Kind::kSetMany;
    if (!writes || !IsFullDirectory(reply.text)) return Wrong(call.keys[0], reply.text);
    findings_.CountRefusal(reply.text);
    return absl::OkStatus();
  }
  switch (call.kind) {
    case Kind::kSet:
    case Kind::kSetMany:
      return TakeSet(call, reply, sent);
    case Kind::kGet:
      return TakeGet(call.keys[0], reply, sent);
    case Kind::kDelete:
      break;
  }
  return TakeDelete(call.keys[0], reply, sent);
}

absl::Status KeyOwner::TakeSet(const Call& call, const Reply& reply, Clock::time_point sent) {
  if (reply.text != "OK") return Wrong(call.keys[0], "a write is answered " + reply.text);
  const milliseconds life = LifeOf(call.first_number);
  const Clock::time_point answered = Clock::now();
  for (size_t i = 0; i < call.keys.size(); ++i) {
    states_[call.keys[i]] = {.number = call.first_number + i,
                             .stays_until = sent + life - kRounding,
                             .gone_from = answered + life + kRounding};
    ++sets_;
  }
  return absl::OkStatus();
}

absl::Status KeyOwner::TakeGet(size_t key, const Reply& reply, Clock::time_point sent) {
  State& state = states_[key];
  if (reply.is_null()) {
    if (state.number == 0) return absl::OkStatus();
    if (!MayBeMissing(state, Clock::now())) return Wrong(key, "is missing");
    if (options_.fate == Fate::kMayGo) ++vanished_;
    state.number = 0;  // and stays missing
    return absl::OkStatus();
  }
  if (!MayBeThere(state, sent)) {
    return Wrong(key, fmt::format("is there, which it must not be: {}", reply.text.substr(0, 40)));
  }
  if (reply.text !=
      OwnedValue(options_.filler, OwnedKey(options_.id, key), {options_.id, state.number})) {
    return Wrong(key, fmt::format("has {} bytes that it must not have: {}", reply.text.size(),
                                  reply.text.substr(0, 40)));
  }
  return absl::OkStatus();
}

absl::Status KeyOwner::TakeDelete(size_t key, const Reply& reply, Clock::time_point sent) {
  State& state = states_[key];
  if (reply.integer == 0 && state.number != 0 && !MayBeMissing(state, Clock::now()))
    return Wrong(key, "is deleted and was not there");
  if (reply.integer == 1 && !MayBeThere(state, sent))
    return Wrong(key, "is deleted and must not have been there");
  if (reply.integer == 1) ++deletes_;
  if (reply.integer == 0 && state.number != 0 && options_.fate == Fate::kMayGo) ++vanished_;
  state.number = 0;
  return absl::OkStatus();
}

bool KeyOwner::MayBeMissing(const State& state, Clock::time_point answered) const {
  if (options_.fate == Fate::kMayGo) return true;
  return options_.fate == Fate::kExpires && answered >= state.stays_until;
}

bool KeyOwner::MayBeThere(const State& state, Clock::time_point sent) const {
  if (state.number == 0) return false;
  return options_.fate != Fate::kExpires || sent < state.gone_from;
}

absl::Status KeyOwner::Check(uint16_t port) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(port, options_.place)));
  Clock::time_point sent = Clock::now();
  VARVE_ASSIGN_OR_RETURN(const Client::Pairs pairs, client->Prefix(OwnedPrefix(options_.id)));
  std::vector<Reply> scanned(options_.keys);
  for (const auto& [key, value] : pairs) {
    const std::optional<size_t> index = IndexOf(options_.id, key);
    if (!index.has_value() || *index >= options_.keys)
      return absl::DataLossError(key + " is a key that nobody wrote");
    scanned[*index] = {.type = Reply::Type::kBulk, .text = value};
  }
  for (size_t key = 0; key < options_.keys; ++key)
    VARVE_RETURN_IF_ERROR(TakeGet(key, scanned[key], sent));
  for (size_t first = 0; first < options_.keys; first += kReadTogether) {
    std::vector<std::string> words = {"MGET"};
    const size_t end = std::min(first + kReadTogether, options_.keys);
    for (size_t key = first; key < end; ++key) words.push_back(OwnedKey(options_.id, key));
    sent = Clock::now();
    VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call(Views(words)));
    for (size_t key = first; key < end; ++key)
      VARVE_RETURN_IF_ERROR(TakeGet(key, reply.elements[key - first], sent));
  }
  return absl::OkStatus();
}

absl::Status KeyOwner::Wrong(size_t key, const std::string& what) const {
  return absl::DataLossError(fmt::format("{} (its last value has the number {}): {}",
                                         OwnedKey(options_.id, key), states_[key].number, what));
}

}  // namespace varve::prove
