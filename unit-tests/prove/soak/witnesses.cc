#include "unit-tests/prove/soak/witnesses.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "unit-tests/prove/soak/key_owner.h"
#include "unit-tests/prove/soak/owned_values.h"
#include "unit-tests/prove/soak/state_sum.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

// The owner whose keys the cache has; its keys are in `zipped` (load.cc).
constexpr int kTrackedOwner = 0;
constexpr size_t kTrackedKeys = 300;
constexpr const char* kBranch = "branch";

// Asks again, with pauses, until the scene has ended or something is wrong.
template <typename Step>
void Repeat(Scene* scene, const std::string& who, absl::Duration pause, const Step& step) {
  absl::Status status;
  while (status.ok() && !scene->ended.WaitForNotificationWithTimeout(pause)) status = step();
  scene->findings->AddStatus(who, status);
}

absl::StatusOr<int64_t> NewestVersion(uint16_t port) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(ClientOf(port, "")));
  VARVE_ASSIGN_OR_RETURN(const Reply now, client->Call({"CHANGES", "NOW"}));
  return now.elements[1].integer;
}

}  // namespace

// --- The past ------------------------------------------------------------------------------------

void PastReader::Run(Scene* scene) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(ClientOf(scene->primary, kExact));
  if (!client.ok()) return scene->findings->AddStatus("the reader of the past", client.status());
  Repeat(scene, "the reader of the past", absl::Milliseconds(100),
         [&] { return Read(scene, client->get()); });
}

absl::Status PastReader::Read(Scene* scene, Client* client) {
  const int64_t newest = scene->mirror->position();
  const int64_t back = int64_t{1} << (random_() % 17);
  const std::optional<StateAt> state = scene->mirror->At(std::max(newest - back, int64_t{0}));
  if (!state.has_value()) return absl::OkStatus();
  const absl::StatusOr<Reply> reply =
      client->Call({"RANGE", "-", "+", "AT", fmt::to_string(state->version)});
  if (!reply.ok() && absl::StrContains(reply.status().message(), "TRIMMED")) {
    ++trimmed_;
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(reply.status());
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < reply->elements.size(); i += 2)
    sum += RecordSum(reply->elements[i].text, reply->elements[i + 1].text);
  if (sum != state->history)
    return absl::DataLossError(
        fmt::format("at version {} there was something else", state->version));
  ++reads_;
  return absl::OkStatus();
}

// --- The follower --------------------------------------------------------------------------------

void FollowerReader::Run(Scene* scene) {
  absl::StatusOr<std::unique_ptr<Client>> primary =
      Client::Connect(ClientOf(scene->primary, kProbe));
  absl::StatusOr<std::unique_ptr<Client>> follower =
      Client::Connect(ClientOf(scene->follower, kProbe));
  if (!primary.ok() || !follower.ok())
    return scene->findings->Add("the reader of the follower cannot connect");
  Repeat(scene, "the reader of the follower", absl::Milliseconds(50), [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(Probe(scene, primary->get(), follower->get()));
    return number_ % 50 == 0 ? ReadAll(scene) : absl::OkStatus();
  });
}

absl::Status FollowerReader::Probe(Scene* scene, Client* primary, Client* follower) {
  const std::string text = fmt::to_string(++number_);
  const absl::StatusOr<Reply> written = primary->Call({"SET", "number", text});
  if (scene->findings->CountIfRefused(written.status())) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(written.status());
  VARVE_ASSIGN_OR_RETURN(const Reply version, primary->Call({"CLIENT", "VERSION"}));
  VARVE_RETURN_IF_ERROR(
      follower->Call({"READAFTER", fmt::to_string(version.integer), "100000"}).status());
  VARVE_ASSIGN_OR_RETURN(const std::optional<std::string> value, follower->Get("number"));
  if (value != text)
    return absl::DataLossError(fmt::format("the follower shows {} after version {}, not {}",
                                           value.value_or("nothing"), version.integer, text));
  ++reads_;
  return absl::OkStatus();
}

absl::Status FollowerReader::ReadAll(Scene* scene) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(scene->follower, kZipped)));
  std::string wrong;
  VARVE_RETURN_IF_ERROR(client->StreamRange(
      "-", "+", {}, {.pair = [&](std::string&& key, std::string&& value, uint64_t) {
        const std::optional<ValueName> name = NameOf(value);
        if (!name.has_value() || value != OwnedValue(Filler::kJson, key, *name)) wrong = key;
        return wrong.empty();
      }}));
  return wrong.empty() ? absl::OkStatus()
                       : absl::DataLossError("the follower has what nobody wrote in " + wrong);
}

// --- The cache of a client -----------------------------------------------------------------------

void TrackingReader::Run(Scene* scene) {
  ClientOptions options = ClientOf(scene->primary, kZipped);
  options.protocol = 3;
  options.on_push = [this](const Reply& message) { TakePush(message); };
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  absl::Status status = client.status();
  if (status.ok()) {
    client_ = *std::move(client);
    status = client_->Call({"CLIENT", "TRACKING", "ON"}).status();
  }
  if (!status.ok()) return scene->findings->AddStatus("the cache of a client", status);
  Repeat(scene, "the cache of a client", absl::Milliseconds(2),
         [&] { return Read(client_.get()); });
}

absl::Status TrackingReader::Read(Client* client) {
  const std::string key = OwnedKey(kTrackedOwner, random_() % kTrackedKeys);
  if (cache_.contains(key)) return client->Ping();
  const uint64_t told = told_;
  VARVE_ASSIGN_OR_RETURN(std::optional<std::string> value, client->Get(key));
  // A message that came in front of the reply may tell of this key: it is asked for again then.
  if (told_ == told) cache_[key] = value.has_value() ? *std::move(value) : std::string();
  return absl::OkStatus();
}

void TrackingReader::TakePush(const Reply& message) {
  if (message.elements.size() < 2 || message.elements[0].text != "invalidate") return;
  ++told_;
  if (message.elements[1].is_null()) cache_.clear();
  for (const Reply& key : message.elements[1].elements) cache_.erase(key.text);
}

absl::Status TrackingReader::Check(uint16_t port) {
  VARVE_RETURN_IF_ERROR(client_->Ping());  // what was left on the way is here then
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> other,
                         Client::Connect(ClientOf(port, kZipped)));
  for (const auto& [key, value] : cache_) {
    VARVE_ASSIGN_OR_RETURN(const std::optional<std::string> now, other->Get(key));
    if (now.value_or("") != value)
      return absl::DataLossError(key + " has changed, and the client that caches it was not told");
  }
  return absl::OkStatus();
}

// --- Merges and branches -------------------------------------------------------------------------

void Housekeeper::Run(Scene* scene) {
  Repeat(scene, "the housekeeper", absl::Seconds(1), [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(Merge(scene));
    return Branch(scene);
  });
}

absl::Status Housekeeper::Merge(Scene* scene) {
  const char* const place = random_() % 2 == 0 ? kZipped : kExact;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(scene->primary, place)));
  const bool all = random_() % 4 == 0;
  const absl::StatusOr<Reply> reply =
      all ? client->Call({"COMPACT"}) : client->Call({"COMPACT", "[o0:000100", "[w1:"});
  if (scene->findings->CountIfRefused(reply.status())) return absl::OkStatus();
  ++merges_;
  return reply.status();
}

absl::Status Housekeeper::Branch(Scene* scene) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(scene->primary, "")));
  const absl::StatusOr<Reply> made = client->Call({"NAMESPACE", "CLONE", kExact, kBranch});
  if (scene->findings->CountIfRefused(made.status())) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(made.status());
  VARVE_ASSIGN_OR_RETURN(const int64_t version, NewestVersion(scene->primary));
  if (!scene->mirror->AwaitVersion(version))
    return absl::InternalError(fmt::format("the feed does not come to version {}", version));
  VARVE_ASSIGN_OR_RETURN(const uint64_t sum, ReadRecordSum(scene->primary, kBranch));
  if (sum != scene->mirror->RecordsOf(kBranch))
    return absl::DataLossError("a branch is not what its source was");
  ++branches_;
  return client->Call({"NAMESPACE", "DROP", kBranch}).status();
}

}  // namespace varve::prove
