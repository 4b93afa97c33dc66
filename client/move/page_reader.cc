#include "client/move/page_reader.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/numbers.h"
#include "client/move/move_options.h"
#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kFields = 4;  // key, value, expiry, metadata
constexpr size_t kLargestPage = 2000;
constexpr size_t kPageBytes = size_t{2} << 20;

void SendRange(Client* client, const KeyBounds& bounds, size_t limit) {
  const std::string count = fmt::to_string(limit);
  client->pipeline().Send(
      {"RANGE", bounds.min, bounds.max, "LIMIT", "0", count, "WITHEXPIRY", "WITHMETA"},
      WhenLost::kResend);
}

absl::StatusOr<std::vector<MovedRecord>> ReceiveRange(Client* client) {
  absl::StatusOr<Reply> reply = client->Receive();
  if (!reply.ok()) return reply.status();
  VARVE_RETURN_IF_ERROR(StatusOf(*reply));
  if (reply->type != Reply::Type::kArray || reply->elements.size() % kFields != 0)
    return absl::DataLossError("the server's reply to RANGE makes no sense");
  std::vector<MovedRecord> records;
  records.reserve(reply->elements.size() / kFields);
  for (size_t i = 0; i < reply->elements.size(); i += kFields) {
    Reply* const fields = &reply->elements[i];
    MovedRecord& record = records.emplace_back();
    record.key = std::move(fields[0].text);
    record.value = std::move(fields[1].text);
    record.expiry_ms = static_cast<uint64_t>(std::max<int64_t>(fields[2].integer, 0));
    record.metadata = std::move(fields[3].text);
  }
  return records;
}

}  // namespace

ClientOptions InSpace(ClientOptions server, const std::string& space) {
  server.namespace_name.clear();
  server.database = 0;
  if (!IsDatabaseName(space) || !absl::SimpleAtoi(space, &server.database))
    server.namespace_name = space;
  return server;
}

absl::StatusOr<std::unique_ptr<PageReader>> PageReader::Open(const ClientOptions& server,
                                                             const std::string& space,
                                                             KeyBounds bounds) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(InSpace(server, space)));
  return std::unique_ptr<PageReader>(new PageReader(std::move(client), std::move(bounds)));
}

void PageReader::Request() {
  VARVE_ASSERT(!is_requested_ && has_more_);
  SendRange(client_.get(), bounds_, page_);
  client_->pipeline().Flush();
  is_requested_ = true;
}

absl::StatusOr<std::vector<MovedRecord>> PageReader::Receive() {
  VARVE_ASSERT(is_requested_);
  is_requested_ = false;
  VARVE_ASSIGN_OR_RETURN(std::vector<MovedRecord> records, ReceiveRange(client_.get()));
  has_more_ = records.size() == page_;
  if (records.empty()) return records;
  bounds_.min = BehindKey(records.back().key);
  size_t bytes = 0;
  for (const MovedRecord& record : records) bytes += record.bytes();
  const size_t mean = bytes / records.size() + 1;
  page_ = std::clamp<size_t>(kPageBytes / mean, 1, kLargestPage);
  return records;
}

absl::StatusOr<std::vector<MovedRecord>> ReadRecords(Client* client, const KeyBounds& bounds,
                                                     size_t limit) {
  SendRange(client, bounds, limit);
  return ReceiveRange(client);
}

}  // namespace varve
