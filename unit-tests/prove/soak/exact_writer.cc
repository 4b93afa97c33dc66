#include "unit-tests/prove/soak/exact_writer.h"

#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/prove/soak/key_owner.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr uint64_t kRequestsBetweenChecks = 500;
constexpr absl::Duration kPauseAfterRefusal = absl::Milliseconds(20);

}  // namespace

void ExactWriter::Run(Scene* scene) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(ClientOf(scene->primary, kExact));
  absl::Status status = client.status();
  for (uint64_t round = 1; status.ok() && !scene->ended.HasBeenNotified(); ++round) {
    const uint64_t refusals = writer_.refusals();
    status = Write(client->get(), scene->findings);
    if (status.ok() && round % kRequestsBetweenChecks == 0) status = CheckWith(client->get());
    if (writer_.refusals() != refusals)
      scene->ended.WaitForNotificationWithTimeout(kPauseAfterRefusal);
  }
  if (status.ok()) status = CheckWith(client->get());
  knows_all_ = status.ok();
  scene->findings->AddStatus("writer " + writer_.prefix(), status);
}

absl::Status ExactWriter::Write(Client* client, Findings* findings) {
  const std::vector<std::string> words = writer_.Next();
  VARVE_RETURN_IF_ERROR(client->Send(std::vector<std::string_view>(words.begin(), words.end())));
  VARVE_ASSIGN_OR_RETURN(Reply reply, client->Receive());
  if (reply.is_error()) {
    if (!IsFullDirectory(reply.text)) return absl::InternalError(words[0] + ": " + reply.text);
    findings->CountRefusal(reply.text);
    reply.text = Writer::kRefusalForNow;
  }
  std::string complaint;
  if (!writer_.Acknowledge(reply, Writer::Clock::now(), &complaint))
    return absl::DataLossError(complaint);
  requests_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status ExactWriter::CheckWith(Client* client) {
  VARVE_ASSIGN_OR_RETURN(const Client::Pairs scanned, client->Prefix(writer_.prefix()));
  const Pairs pairs(scanned.begin(), scanned.end());
  std::vector<std::string> words = {"MGET"};
  for (size_t key = 0; key < Writer::kKeys; ++key) words.push_back(writer_.Key(key));
  VARVE_ASSIGN_OR_RETURN(const Reply reply,
                         client->Call(std::vector<std::string_view>(words.begin(), words.end())));
  for (size_t key = 0; key < Writer::kKeys; ++key) {
    const auto pair = pairs.find(words[key + 1]);
    const Reply& value = reply.elements[key];
    if (value.is_null() != (pair == pairs.end()) ||
        (!value.is_null() && value.text != pair->second))
      return absl::DataLossError(words[key + 1] + ": a scan and a point read differ");
  }
  const Verdict verdict = writer_.Check(pairs, writer_.acknowledged());
  if (!verdict.good()) return absl::DataLossError(verdict.complaints[0]);
  writer_.GoOnFrom(writer_.acknowledged());
  ++checks_;
  return absl::OkStatus();
}

absl::Status ExactWriter::Check(uint16_t port) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(port, kExact)));
  return CheckWith(client.get());
}

}  // namespace varve::prove
