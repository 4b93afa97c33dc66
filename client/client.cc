#include "client/client.h"

#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status Unexpected(std::string_view command) {
  return absl::InternalError(
      fmt::format("the server's reply to {} has an unexpected type", command));
}

absl::StatusOr<int64_t> IntegerOf(const absl::StatusOr<Reply>& reply, std::string_view command) {
  if (!reply.ok()) return reply.status();
  if (reply->type != Reply::Type::kInteger) return Unexpected(command);
  return reply->integer;
}

// The options of a range, as words that follow its command.
class RangeWords {
 public:
  explicit RangeWords(const RangeQuery& query)
      : query_(query), offset_(fmt::to_string(query.offset)), limit_(fmt::to_string(query.limit)) {}

  void AppendTo(std::vector<std::string_view>* arguments) const {
    if (query_.reverse) arguments->push_back("REV");
    if (query_.offset != 0 || query_.limit >= 0)
      arguments->insert(arguments->end(), {"LIMIT", offset_, limit_});
    if (query_.keys_only) arguments->push_back("KEYS");
    if (query_.with_expiry) arguments->push_back("WITHEXPIRY");
    if (query_.with_metadata) arguments->push_back("WITHMETA");
  }

 private:
  const RangeQuery& query_;
  const std::string offset_;
  const std::string limit_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<Pipeline> pipeline, Pipeline::Connect(std::move(options)));
  return std::unique_ptr<Client>(new Client(std::move(pipeline)));
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& host, uint16_t port,
                                                        std::chrono::milliseconds timeout) {
  ClientOptions options;
  options.host = host;
  options.port = port;
  options.timeout = timeout;
  options.connect_timeout = timeout;
  options.reconnect_for = std::chrono::milliseconds(0);
  return Connect(std::move(options));
}

absl::Status Client::Send(absl::Span<const std::string_view> arguments) {
  if (pipeline_->closed()) return absl::UnavailableError("the connection is closed");
  pipeline_->Send(arguments);
  return absl::OkStatus();
}

absl::StatusOr<Reply> Client::Call(absl::Span<const std::string_view> arguments,
                                   WhenLost when_lost) {
  pipeline_->Send(arguments, when_lost);
  absl::StatusOr<Reply> reply = pipeline_->Receive();
  if (reply.ok() && reply->is_error()) return StatusOfError(*reply);
  return reply;
}

absl::Status Client::Ping() { return Call({"PING"}).status(); }

absl::Status Client::Put(std::string_view key, std::string_view value) {
  return Call({"SET", key, value}).status();
}

absl::Status Client::PutAll(absl::Span<const std::pair<std::string_view, std::string_view>> pairs) {
  if (pairs.empty()) return absl::OkStatus();
  std::vector<std::string_view> arguments = {"MSET"};
  for (const auto& [key, value] : pairs) {
    arguments.push_back(key);
    arguments.push_back(value);
  }
  return Call(arguments).status();
}

absl::StatusOr<std::optional<std::string>> Client::Get(std::string_view key) {
  absl::StatusOr<Reply> reply = Call({"GET", key});
  if (!reply.ok()) return reply.status();
  if (reply->is_null()) return std::optional<std::string>();
  if (reply->type != Reply::Type::kBulk) return Unexpected("GET");
  return std::optional<std::string>(std::move(reply->text));
}

absl::StatusOr<std::optional<VersionedValue>> Client::GetWithVersion(std::string_view key) {
  absl::StatusOr<Reply> reply = Call({"GET", key, "WITHVERSION"});
  if (!reply.ok()) return reply.status();
  if (reply->is_null()) return std::optional<VersionedValue>();
  if (reply->type != Reply::Type::kArray || reply->elements.size() != 2) return Unexpected("GET");
  return VersionedValue{std::move(reply->elements[0].text),
                        static_cast<uint64_t>(reply->elements[1].integer)};
}

absl::StatusOr<std::optional<uint64_t>> Client::PutIfVersion(std::string_view key,
                                                             std::string_view value,
                                                             uint64_t version) {
  const absl::StatusOr<Reply> reply =
      Call({"PUT", key, value, "IFVERSION", fmt::to_string(version)});
  if (!reply.ok()) return reply.status();
  if (reply->is_null()) return std::optional<uint64_t>();
  if (reply->type != Reply::Type::kInteger) return Unexpected("PUT");
  return static_cast<uint64_t>(reply->integer);
}

absl::StatusOr<int64_t> Client::Delete(absl::Span<const std::string_view> keys) {
  if (keys.empty()) return int64_t{0};
  std::vector<std::string_view> arguments = {"DEL"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  return IntegerOf(Call(arguments), "DEL");
}

absl::StatusOr<Client::Pairs> Client::List(std::vector<std::string_view> arguments,
                                           RangeQuery query) {
  query.with_expiry = query.with_metadata = false;  // pairs have no place for them
  const RangeWords words(query);
  words.AppendTo(&arguments);
  absl::StatusOr<Reply> reply = Call(arguments);
  if (!reply.ok()) return reply.status();
  const size_t each = query.keys_only ? 1 : 2;
  if (reply->type != Reply::Type::kArray || reply->elements.size() % each != 0)
    return Unexpected(arguments[0]);
  Pairs pairs;
  pairs.reserve(reply->elements.size() / each);
  for (size_t i = 0; i < reply->elements.size(); i += each) {
    pairs.emplace_back(std::move(reply->elements[i].text),
                       query.keys_only ? std::string() : std::move(reply->elements[i + 1].text));
  }
  return pairs;
}

absl::Status Client::Stream(std::vector<std::string_view> arguments, const RangeQuery& query,
                            const PairSink& sink) {
  const RangeWords words(query);
  words.AppendTo(&arguments);
  const size_t each =
      1 + (query.keys_only ? 0 : 1) + (query.with_expiry ? 1 : 0) + (query.with_metadata ? 1 : 0);
  bool enough = false;
  size_t taken = 0;  // elements of the pair at hand
  std::string key, value;
  uint64_t expires_at_ms = 0;
  ReplySink elements;
  elements.begin = [&](size_t count) {
    if (sink.begin) sink.begin(count / each);
  };
  elements.element = [&](Reply&& element) {
    if (taken == 0) {
      key = std::move(element.text);
    } else if (taken == 1 && !query.keys_only) {
      value = std::move(element.text);
    } else if (query.with_metadata && taken + 1 == each) {
      if (!element.text.empty()) sink.metadata(std::move(element.text));
    } else {
      expires_at_ms = static_cast<uint64_t>(std::max<int64_t>(element.integer, 0));
    }
    if (++taken < each) return true;
    taken = 0;
    enough = !sink.pair(std::move(key), std::move(value), expires_at_ms);
    return !enough;
  };
  pipeline_->SendStream(arguments, std::move(elements));
  const absl::StatusOr<Reply> reply = pipeline_->Receive();
  if (enough) return absl::OkStatus();
  if (!reply.ok()) return reply.status();
  return StatusOf(*reply);
}

absl::StatusOr<Client::Pairs> Client::Range(std::string_view min, std::string_view max,
                                            const RangeQuery& query) {
  if (query.reverse) std::swap(min, max);
  return List({"RANGE", min, max}, query);
}

absl::StatusOr<Client::Pairs> Client::Prefix(std::string_view prefix, const RangeQuery& query) {
  return List({"PREFIX", prefix}, query);
}

absl::Status Client::StreamRange(std::string_view min, std::string_view max,
                                 const RangeQuery& query, const PairSink& sink) {
  if (query.reverse) std::swap(min, max);
  return Stream({"RANGE", min, max}, query, sink);
}

absl::Status Client::StreamPrefix(std::string_view prefix, const RangeQuery& query,
                                  const PairSink& sink) {
  return Stream({"PREFIX", prefix}, query, sink);
}

absl::StatusOr<int64_t> Client::Count(std::string_view min, std::string_view max) {
  return IntegerOf(Call({"COUNT", min, max}), "COUNT");
}

}  // namespace varve
