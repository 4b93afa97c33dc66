#include "client/copies/change_reply.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kParts = 4;         // of a reply
constexpr size_t kCommitFields = 3;  // version, instant, operations
constexpr size_t kFields = 8;        // of an operation
// In the order of ChangeOperation::Kind.
constexpr std::string_view kWords[] = {"set",      "del",   "expire", "expired", "evicted",
                                       "delrange", "flush", "ingest", "create",  "drop",
                                       "swap",     "clone", "meta"};

absl::Status Senseless() {
  return absl::DataLossError("the server's reply to CHANGES makes no sense");
}

bool IsArray(const Reply& reply, size_t size) {
  return reply.type == Reply::Type::kArray && reply.elements.size() == size;
}

bool Read(Reply* reply, ChangeOperation* operation) {
  if (!IsArray(*reply, kFields)) return false;
  std::vector<Reply>& fields = reply->elements;
  const auto* const word = std::find(std::begin(kWords), std::end(kWords), fields[0].text);
  if (word == std::end(kWords)) return false;
  operation->kind = static_cast<ChangeOperation::Kind>(word - std::begin(kWords));
  operation->name = std::move(fields[1].text);
  operation->key = std::move(fields[2].text);
  operation->value = std::move(fields[3].text);
  operation->expiry_ms = static_cast<uint64_t>(fields[4].integer);
  operation->metadata = std::move(fields[6].text);
  operation->space = static_cast<NamespaceId>(fields[7].integer);
  return fields[7].type == Reply::Type::kInteger;
}

bool Read(Reply* reply, Change* commit) {
  if (!IsArray(*reply, kCommitFields) || reply->elements[2].type != Reply::Type::kArray)
    return false;
  commit->version = static_cast<SequenceNumber>(reply->elements[0].integer);
  commit->instant_ms = static_cast<uint64_t>(reply->elements[1].integer);
  for (Reply& operation : reply->elements[2].elements)
    if (!Read(&operation, &commit->operations.emplace_back())) return false;
  return true;
}

}  // namespace

absl::StatusOr<ChangeReply> ParseChangeReply(Reply reply) {
  if (!IsArray(reply, kParts) || reply.elements[3].type != Reply::Type::kArray) return Senseless();
  ChangeReply changes;
  changes.history_id = static_cast<uint64_t>(reply.elements[0].integer);
  changes.next = static_cast<SequenceNumber>(reply.elements[1].integer);
  changes.first = static_cast<SequenceNumber>(reply.elements[2].integer);
  for (Reply& commit : reply.elements[3].elements)
    if (!Read(&commit, &changes.commits.emplace_back())) return Senseless();
  return changes;
}

}  // namespace varve
