#include "unit-tests/prove/fleet.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr size_t kMaxComplaints = 20;

absl::StatusOr<std::unique_ptr<Client>> ConnectTo(uint16_t port) {
  return Client::Connect("127.0.0.1", port, kPatience);
}

std::vector<std::string_view> Views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// All keys of a writer, by a scan; and by point reads, which go another way, the same.
absl::StatusOr<Pairs> ReadAll(Client* client, const Writer& writer) {
  VARVE_ASSIGN_OR_RETURN(const Client::Pairs scanned, client->Prefix(writer.prefix()));
  Pairs pairs(scanned.begin(), scanned.end());
  if (pairs.size() != scanned.size())
    return absl::DataLossError(writer.prefix() + " a scan shows a key twice");
  std::vector<std::string> request = {"MGET"};
  for (size_t key = 0; key < Writer::kKeys; ++key) request.push_back(writer.Key(key));
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call(Views(request)));
  for (size_t key = 0; key < Writer::kKeys; ++key) {
    const Reply& value = reply.elements[key];
    const auto pair = pairs.find(request[key + 1]);
    if (value.is_null() != (pair == pairs.end()) ||
        (!value.is_null() && value.text != pair->second)) {
      return absl::DataLossError(request[key + 1] + ": a scan and a point read differ");
    }
  }
  return pairs;
}

}  // namespace

void Figures::Add(const Figures& other) {
  cycles += other.cycles;
  sent += other.sent;
  acknowledged += other.acknowledged;
  released += other.released;
  taken += other.taken;
  unasked += other.unasked;
  shown += other.shown;
  lost += other.lost;
  torn += other.torn;
  longest_start = std::max(longest_start, other.longest_start);
  oldest_taken = std::max(oldest_taken, other.oldest_taken);
  for (const std::string& complaint : other.complaints) {
    if (complaints.size() < kMaxComplaints) complaints.push_back(complaint);
  }
}

Fleet::Fleet(size_t writers, uint64_t seed) : shown_(writers) {
  for (size_t i = 0; i < writers; ++i)
    writers_.push_back(std::make_unique<Writer>(static_cast<int>(i), seed * 1000 + i));
}

void Fleet::Complain(std::string complaint) {
  const std::lock_guard lock(mutex_);
  if (complaints_.size() < kMaxComplaints) complaints_.push_back(std::move(complaint));
}

absl::Status Fleet::Start(uint16_t port, size_t depth, bool may_go_back) {
  stop_ = false;
  watches_ = true;
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i <= writers_.size(); ++i) {
    VARVE_ASSIGN_OR_RETURN(clients.emplace_back(), ConnectTo(port));
  }
  for (size_t i = 0; i < writers_.size(); ++i) {
    threads_.emplace_back([this, i, depth, client = std::move(clients[i])]() mutable {
      Write(writers_[i].get(), std::move(client), depth);
    });
  }
  threads_.emplace_back([this, may_go_back, client = std::move(clients.back())]() mutable {
    Watch(std::move(client), may_go_back);
  });
  return absl::OkStatus();
}

void Fleet::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Fleet::Write(Writer* writer, std::unique_ptr<Client> client, size_t depth) {
  std::string complaint;
  uint64_t refusals = 0;
  while (!stop_ && writer->error().empty()) {
    writer->SendingAt(Writer::Clock::now());
    for (size_t i = 0; i < depth; ++i) {
      const std::vector<std::string> request = writer->Next();
      if (!client->Send(Views(request)).ok()) return;
    }
    for (size_t i = 0; i < depth; ++i) {
      const absl::StatusOr<Reply> reply = client->Receive();
      if (!reply.ok()) return;
      if (!writer->Acknowledge(*reply, Writer::Clock::now(), &complaint))
        return Complain(std::move(complaint));
    }
    if (writer->refusals() > refusals) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    refusals = writer->refusals();
  }
}

void Fleet::Watch(std::unique_ptr<Client> client, bool may_go_back) {
  std::vector<std::string> request = {"MGET"};
  for (const std::unique_ptr<Writer>& writer : writers_) request.push_back(writer->Key(0));
  while (!stop_) {
    const absl::StatusOr<Reply> reply = client->Call(Views(request));
    if (!reply.ok() || !watches_) return;
    for (size_t i = 0; i < writers_.size(); ++i) {
      if (reply->elements[i].is_error()) continue;  // it can't be read at present
      const std::string& text = reply->elements[i].text;
      uint64_t count = 0;
      std::from_chars(text.data(), text.data() + text.size(), count);
      if (count < shown_[i] && !may_go_back) {
        Complain(fmt::format("{} went back from {} to \"{}\"", request[i + 1], shown_[i], text));
      }
      shown_[i] = std::max(shown_[i], count);
      ++shows_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Figures Fleet::Check(uint16_t port, const Grace& grace) {
  Figures figures;
  CheckRefusals(&figures);
  absl::StatusOr<std::unique_ptr<Client>> client = ConnectTo(port);
  absl::Status status = client.status();
  if (status.ok()) status = CheckAgainst(client->get(), grace, &figures);
  if (!status.ok()) Complain(status.ToString());
  figures.shown = std::exchange(shows_, 0);
  for (std::string& complaint : complaints_) figures.complaints.push_back(std::move(complaint));
  complaints_.clear();
  return figures;
}

Pairs Fleet::Expected() const {
  Pairs pairs;
  for (const std::unique_ptr<Writer>& writer : writers_) pairs.merge(writer->Beginning());
  return pairs;
}

std::vector<std::string> Fleet::AllKeys() const {
  std::vector<std::string> keys;
  for (const std::unique_ptr<Writer>& writer : writers_) {
    for (size_t key = 0; key < Writer::kKeys; ++key) keys.push_back(writer->Key(key));
  }
  return keys;
}

// A log that has failed once acknowledges nothing that was sent after a client had been told.
void Fleet::CheckRefusals(Figures* figures) const {
  auto first = Writer::Clock::time_point::max();
  for (const std::unique_ptr<Writer>& writer : writers_) {
    if (writer->refused_for_good()) first = std::min(first, writer->error_time());
  }
  for (const std::unique_ptr<Writer>& writer : writers_) {
    if (writer->LastChangeSentAt() > first) {
      figures->complaints.push_back(
          writer->prefix() + " was acknowledged what was sent after another client got an error");
    }
  }
}

uint64_t Fleet::MustSurvive(size_t index, const Grace& grace) const {
  const Writer& writer = *writers_[index];
  if (grace.any)
    return grace.age.count() == 0 ? 0 : writer.AcknowledgedBefore(grace.crash - grace.age);
  uint64_t acknowledged = writer.acknowledged();
  if (grace.settled && writer.LastChangeSentAt() < *grace.settled)
    acknowledged = writer.AcknowledgedBefore(grace.crash);
  return std::max(acknowledged, writer.StepsUntilCount(shown_[index]));
}

absl::Status Fleet::CheckAgainst(Client* client, const Grace& grace, Figures* figures) {
  size_t keys = 0;
  std::vector<Pairs> found;
  std::vector<uint64_t> least;
  auto last_survivor = Writer::Clock::time_point::min();  // when it was sent
  for (size_t i = 0; i < writers_.size(); ++i) {
    const Writer& writer = *writers_[i];
    VARVE_ASSIGN_OR_RETURN(found.emplace_back(), ReadAll(client, writer));
    keys += found.back().size();
    least.push_back(MustSurvive(i, grace));
    const Verdict verdict = writer.Check(found[i], least[i]);
    if (verdict.survived > 0)
      last_survivor = std::max(last_survivor, writer.SentAt(verdict.survived - 1));
  }
  for (size_t i = 0; i < writers_.size(); ++i) {
    Writer& writer = *writers_[i];
    // What was acknowledged before a survivor was even sent comes before it in the log, and nothing
    // is lost but an end of the log.
    const uint64_t must = std::max(least[i], writer.AcknowledgedBefore(last_survivor));
    const Verdict verdict = writer.Check(found[i], must);
    figures->sent += writer.sent();
    figures->acknowledged += std::min(must, writer.acknowledged());
    figures->released += writer.acknowledged() - std::min(writer.acknowledged(), must);
    figures->lost += verdict.lost;
    figures->torn += verdict.torn;
    for (const std::string& complaint : verdict.complaints)
      figures->complaints.push_back(complaint);
    if (verdict.survived > writer.acknowledged())
      figures->unasked += verdict.survived - writer.acknowledged();
    CountTaken(writer, verdict.survived, grace, figures);
    writer.GoOnFrom(verdict.survived);
    shown_[i] = 0;
  }
  VARVE_ASSIGN_OR_RETURN(const Reply size, client->Call({"DBSIZE"}));
  if (size.integer != static_cast<int64_t>(keys)) {
    return absl::DataLossError(
        fmt::format("DBSIZE is {}, but there are {} keys", size.integer, keys));
  }
  VARVE_ASSIGN_OR_RETURN(const int64_t all, client->Count("-", "+"));
  if (all != size.integer)
    return absl::DataLossError(fmt::format("there are {} keys in all, not {}", all, keys));
  return absl::OkStatus();
}

void Fleet::CountTaken(const Writer& writer, uint64_t survived, const Grace& grace,
                       Figures* figures) const {
  if (!grace.any || survived >= writer.acknowledged()) return;
  figures->taken += writer.acknowledged() - survived;
  const auto age = grace.crash - writer.AcknowledgedAt(survived);
  figures->oldest_taken =
      std::max(figures->oldest_taken, std::chrono::duration_cast<std::chrono::milliseconds>(age));
}

}  // namespace varve::prove
