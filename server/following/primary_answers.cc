#include "server/following/primary_answers.h"

#include <utility>

#include "fmt/format.h"
#include "util/base/whole_number.h"

namespace varve {
namespace {

using Type = Reply::Type;

absl::Status Senseless(std::string_view what) {
  return absl::DataLossError(
      fmt::format("the primary's answer to REPLICA {} makes no sense", what));
}

// Reads the elements of an array, one after the other. A wrong one makes ok() false for good.
class Elements {
 public:
  Elements(const Reply& reply, size_t count) : reply_(reply) {
    ok_ = reply.type == Type::kArray && reply.elements.size() == count;
  }
  explicit Elements(const Reply& reply) : reply_(reply) { ok_ = reply.type == Type::kArray; }

  bool ok() const { return ok_; }
  bool more() const { return ok_ && next_ < reply_.elements.size(); }
  const Reply* Next(Type type) {
    ok_ = more() && reply_.elements[next_].type == type;
    return ok_ ? &reply_.elements[next_++] : nullptr;
  }
  uint64_t Number() {
    const Reply* const reply = Next(Type::kInteger);
    ok_ = ok_ && reply->integer >= 0;
    return ok_ ? static_cast<uint64_t>(reply->integer) : 0;
  }
  std::string Text() {
    const Reply* const reply = Next(Type::kBulk);
    return reply != nullptr ? reply->text : std::string();
  }
  // Reads 16 hex digits.
  uint64_t Id() {
    const std::string text = Text();
    uint64_t id = 0;
    ok_ = ok_ && ParseWholeNumber(text, &id, 16);
    return id;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    const Reply* const reply = Next(Type::kArray);
    if (reply == nullptr) return texts;
    for (Elements each(*reply); each.more();) {
      texts.push_back(each.Text());
      ok_ = ok_ && each.ok();
    }
    return texts;
  }

 private:
  const Reply& reply_;
  size_t next_ = 0;
  bool ok_ = true;
};

// A name that stays within the directory of a copy.
bool IsFileName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

absl::StatusOr<PrimaryHello> ParseHello(const Reply& reply) {
  Elements elements(reply, 9);
  PrimaryHello hello;
  elements.Number();  // the protocol and the format are ours, else the primary had refused
  elements.Number();
  hello.id = elements.Text();
  hello.store_id = elements.Id();
  hello.lineage.current = elements.Id();
  hello.lineage.newest = elements.Number();
  hello.first_retained = elements.Number();
  hello.upstream = elements.Texts();
  const Reply* const past = elements.Next(Type::kArray);
  bool is_good = elements.ok();
  for (size_t i = 0; is_good && i < past->elements.size(); ++i) {
    Elements pair(past->elements[i], 2);
    const uint64_t id = pair.Id();
    hello.lineage.past.push_back({id, pair.Number()});
    is_good = pair.ok();
  }
  if (!is_good) return Senseless("HELLO");
  return hello;
}

absl::StatusOr<PulledChanges> ParsePull(Reply reply) {
  Elements elements(reply, 4);
  PulledChanges pulled;
  pulled.newest = elements.Number();
  pulled.history_id = elements.Id();
  pulled.position = elements.Number();
  if (elements.Next(Type::kBulk) == nullptr) return Senseless("PULL");
  pulled.blocks = std::move(reply.elements[3].text);
  return pulled;
}

absl::StatusOr<AckAnswer> ParseAck(const Reply& reply) {
  Elements elements(reply, 2);
  AckAnswer answer;
  answer.newest = elements.Number();
  answer.upstream = elements.Texts();
  if (!elements.ok()) return Senseless("ACK");
  return answer;
}

absl::StatusOr<CopyAnswer> ParseCopy(const Reply& reply) {
  Elements elements(reply, 4);
  CopyAnswer copy;
  copy.version = elements.Number();
  copy.store_id = elements.Id();
  copy.history_id = elements.Id();
  const Reply* const files = elements.Next(Type::kArray);
  bool is_good = elements.ok();
  for (size_t i = 0; is_good && i < files->elements.size(); ++i) {
    Elements pair(files->elements[i], 2);
    std::string name = pair.Text();
    const uint64_t size = pair.Number();
    is_good = pair.ok() && IsFileName(name);
    copy.files.push_back({std::move(name), size});
  }
  if (!is_good) return Senseless("COPY");
  return copy;
}

}  // namespace varve
