// Commands that send messages to other connections, and those that listen to them.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/clients/client_modes.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "util/base/glob.h"

namespace varve {
namespace {

using Kind = PubSub::Kind;

// False: the channel's name, or pattern, is longer than it may be, and the error was answered.
bool IsShortEnough(CommandContext& context, Kind kind, std::string_view name) {
  const bool pattern = kind == Kind::kPattern;
  const size_t limit = pattern ? kMaxGlobPattern : PubSub::kMaxChannelName;
  if (name.size() <= limit) return true;
  context.reply.Error(fmt::format("ERR {} has at most {} bytes",
                                  pattern ? "a pattern" : "a channel's name", limit));
  return false;
}

// What was sent to this client before it stopped to listen, or by itself, goes ahead of what is
// answered next.
void TakeMailFirst(CommandContext& context) {
  Mailbox& mailbox = context.client.link.mailbox;
  if (!mailbox.empty())
    context.DependOn(mailbox.TakeAll(context.reply.buffer(), context.client.protocol));
}

// Channels and patterns are counted together.
size_t CountSubscriptions(const ClientModes& modes, Kind kind) {
  const auto count = [&](Kind which) {
    return modes.subscriptions[static_cast<size_t>(which)].size();
  };
  return kind == Kind::kShard ? count(Kind::kShard) : count(Kind::kChannel) + count(Kind::kPattern);
}

void ReplyCount(CommandContext& context, Kind kind, std::string_view verb,
                const std::string_view* name) {
  context.reply.Push(3);
  context.reply.Bulk(verb);
  if (name != nullptr) {
    context.reply.Bulk(*name);
  } else {
    context.reply.Null();
  }
  context.reply.Integer(static_cast<int64_t>(CountSubscriptions(context.client.modes, kind)));
}

void SubscribeAll(CommandContext& context, Kind kind, std::string_view verb, Arguments names) {
  context.Pushed();
  TakeMailFirst(context);
  for (const std::string_view name : names) {
    if (!IsShortEnough(context, kind, name)) continue;
    if (!Subscribe(&context.server.clients, &context.client, kind, name)) {
      context.reply.Error(
          fmt::format("ERR the names that a connection listens to have at most {} bytes",
                      kMaxSubscriptionBytes));
    } else {
      ReplyCount(context, kind, verb, &name);
    }
  }
}

void UnsubscribeAll(CommandContext& context, Kind kind, std::string_view verb, Arguments names) {
  context.Pushed();
  const std::set<std::string>& own = context.client.modes.subscriptions[static_cast<size_t>(kind)];
  const std::vector<std::string> all(own.begin(), own.end());
  std::vector<std::string_view> wanted(names.begin(), names.end());
  if (names.empty()) wanted.assign(all.begin(), all.end());
  if (wanted.empty()) {
    TakeMailFirst(context);
    ReplyCount(context, kind, verb, nullptr);
  }
  for (const std::string_view& name : wanted) {
    Unsubscribe(&context.server.clients, &context.client, kind, name);
    TakeMailFirst(context);
    ReplyCount(context, kind, verb, &name);
  }
}

void HandleSubscribe(CommandContext& context, Arguments arguments) {
  SubscribeAll(context, Kind::kChannel, "subscribe", arguments.subspan(1));
}
void HandlePSubscribe(CommandContext& context, Arguments arguments) {
  SubscribeAll(context, Kind::kPattern, "psubscribe", arguments.subspan(1));
}
void HandleSSubscribe(CommandContext& context, Arguments arguments) {
  SubscribeAll(context, Kind::kShard, "ssubscribe", arguments.subspan(1));
}
void HandleUnsubscribe(CommandContext& context, Arguments arguments) {
  UnsubscribeAll(context, Kind::kChannel, "unsubscribe", arguments.subspan(1));
}
void HandlePUnsubscribe(CommandContext& context, Arguments arguments) {
  UnsubscribeAll(context, Kind::kPattern, "punsubscribe", arguments.subspan(1));
}
void HandleSUnsubscribe(CommandContext& context, Arguments arguments) {
  UnsubscribeAll(context, Kind::kShard, "sunsubscribe", arguments.subspan(1));
}

// The publisher itself may listen.
void TakeOwnMessage(CommandContext& context) {
  if (context.client.modes.Subscribed() && !context.client.RepliesKept()) TakeMailFirst(context);
}

// The reply to PUBLISH where there are many to tell, or patterns take long. What it points to stays
// in place until the batch is done.
class PublishStream : public ReplyStream {
 public:
  explicit PublishStream(PubSub::Publication publication) : publication_(std::move(publication)) {}

  Progress Produce(CommandContext& context, size_t) override {
    return Publish(context, &publication_) ? Progress::kDone : Progress::kMore;
  }

  // False: others should get their turn before it goes on.
  static bool Publish(CommandContext& context, PubSub::Publication* publication) {
    size_t sends = publication->woken;
    const auto spent = [&](size_t keys) {
      if (publication->woken > sends) context.MakeWork(kSendTime);
      sends = publication->woken;
      return context.SliceSpent(keys);
    };
    if (!context.server.clients.pubsub.Publish(publication, spent)) return false;
    TakeOwnMessage(context);
    context.reply.Integer(static_cast<int64_t>(publication->deliveries));
    return true;
  }

 private:
  // That its thread will spend on a connection woken.
  static constexpr std::chrono::microseconds kSendTime{4};

  PubSub::Publication publication_;
};

void PublishTo(CommandContext& context, Kind kind, Arguments arguments) {
  if (!IsShortEnough(context, kind, arguments[1])) return;
  PubSub::Publication publication{.kind = kind, .channel = arguments[1], .message = arguments[2]};
  if (PublishStream::Publish(context, &publication)) return;
  context.Stream(std::make_unique<PublishStream>(std::move(publication)));
}

void HandlePublish(CommandContext& context, Arguments arguments) {
  PublishTo(context, Kind::kChannel, arguments);
}
void HandleSPublish(CommandContext& context, Arguments arguments) {
  PublishTo(context, Kind::kShard, arguments);
}

// The reply to PUBSUB CHANNELS: names are copied a few at a time and matched while nobody waits for
// their table.
class NamesStream : public ReplyStream {
 public:
  static constexpr size_t kCopiedTogether = 64;

  // Without a pattern all names. It stays in place until the batch is done.
  NamesStream(Kind kind, std::optional<std::string_view> pattern)
      : kind_(kind), pattern_(pattern) {}

  Progress Produce(CommandContext& context, size_t) override {
    RespWriter writer(&found_, context.reply.protocol());
    while (true) {
      const std::vector<std::string> names =
          context.server.clients.pubsub.Names(kind_, from_, kCopiedTogether);
      if (names.empty()) break;
      for (const std::string& name : names) {
        if (!pattern_ || GlobMatches(*pattern_, name)) {
          writer.Bulk(name);
          ++found_names_;
        }
        from_ = name + '\0';
        if (context.SliceSpent(pattern_ ? GlobCost(*pattern_, name) : 1)) return Progress::kMore;
      }
    }
    context.reply.Array(found_names_);
    context.reply.buffer()->Append(found_.view());
    return Progress::kDone;
  }

 private:
  const Kind kind_;
  const std::optional<std::string_view> pattern_;
  std::string from_;
  ByteBuffer found_;
  size_t found_names_ = 0;
};

void ReplyNames(CommandContext& context, Kind kind, Arguments rest) {
  std::optional<std::string_view> pattern;
  if (!rest.empty()) pattern = rest[0];
  if (pattern && !IsShortEnough(context, Kind::kPattern, *pattern)) return;
  context.Stream(std::make_unique<NamesStream>(kind, pattern));
}

void ReplySubscribers(CommandContext& context, Kind kind, Arguments names) {
  context.reply.Array(2 * names.size());
  for (const std::string_view name : names) {
    context.reply.Bulk(name);
    context.reply.Integer(
        static_cast<int64_t>(context.server.clients.pubsub.Subscribers(kind, name)));
  }
}

void HandlePubSub(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  const Arguments rest = arguments.subspan(2);
  if (what == "channels" || what == "shardchannels") {
    if (rest.size() > 1) return ReplySubcommandSyntax(context, arguments);
    ReplyNames(context, what == "channels" ? Kind::kChannel : Kind::kShard, rest);
  } else if (what == "numsub" || what == "shardnumsub") {
    ReplySubscribers(context, what == "numsub" ? Kind::kChannel : Kind::kShard, rest);
  } else {  // numpat
    context.reply.Integer(
        static_cast<int64_t>(context.server.clients.pubsub.Count(Kind::kPattern)));
  }
}

void HandleMonitor(CommandContext& context, Arguments arguments) {
  if (context.in_transaction()) {
    // In Redis' words.
    return context.reply.Error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  if (context.client.modes.monitoring) return context.NoReply();  // as in Redis
  context.reply.Ok();
  Monitor(&context.server.clients, &context.client);
}

constexpr uint32_t kListens = kPubSubCommand | kSubscriberCommand | kLocalCommand;
constexpr Command kPubsubRows[] = {
    {.name = "monitor",
     .arity = 1,
     .flags = kAdminCommand,
     .handler = HandleMonitor,
     .group = "server",
     .summary = "Shows every command that the server executes, until RESET or QUIT.",
     .complexity = "O(1), and then O(M) for M bytes of each request that any client sends",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "psubscribe",
     .arity = -2,
     .flags = kListens,
     .handler = HandlePSubscribe,
     .group = "pubsub",
     .summary = "Listens to all channels that match the patterns.",
     .syntax = "pattern [pattern ...]",
     .complexity = "O(N) for N patterns",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "publish",
     .arity = 3,
     .flags = kPubSubCommand | kFastCommand | kLocalCommand,
     .handler = HandlePublish,
     .group = "pubsub",
     .summary = "Sends a message to all who listen to a channel now.",
     .syntax = "channel message",
     .complexity = "O(N + P) for N subscribers of the channel and P patterns of all clients",
     .redis = {.flags = "loading stale"}},
    {.name = "pubsub",
     .arity = -2,
     .flags = kContainerCommand | kSlowCommand,
     .handler = HandlePubSub,
     .group = "pubsub",
     .summary = "Shows who listens to what.",
     .syntax = "CHANNELS | NUMPAT | NUMSUB | SHARDCHANNELS | SHARDNUMSUB | HELP"},
    {.name = "punsubscribe",
     .arity = -1,
     .flags = kListens,
     .handler = HandlePUnsubscribe,
     .group = "pubsub",
     .summary = "Stops to listen to patterns, without arguments to all.",
     .syntax = "[pattern ...]",
     .complexity = "O(N) for N patterns",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "spublish",
     .arity = 3,
     .flags = kPubSubCommand | kFastCommand | kLocalCommand,
     .handler = HandleSPublish,
     .group = "pubsub",
     .summary = "Sends a message to all who listen to a shard channel now.",
     .syntax = "shardchannel message",
     .complexity = "O(N) for N subscribers of the channel",
     .redis = {.flags = "loading stale"}},
    {.name = "ssubscribe",
     .arity = -2,
     .flags = kListens,
     .handler = HandleSSubscribe,
     .group = "pubsub",
     .summary = "Listens to shard channels.",
     .syntax = "shardchannel [shardchannel ...]",
     .complexity = "O(N) for N channels",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "subscribe",
     .arity = -2,
     .flags = kListens,
     .handler = HandleSubscribe,
     .group = "pubsub",
     .summary = "Listens to channels.",
     .syntax = "channel [channel ...]",
     .complexity = "O(N) for N channels",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "sunsubscribe",
     .arity = -1,
     .flags = kListens,
     .handler = HandleSUnsubscribe,
     .group = "pubsub",
     .summary = "Stops to listen to shard channels, without arguments to all.",
     .syntax = "[shardchannel ...]",
     .complexity = "O(N) for N channels",
     .redis = {.flags = "noscript loading stale"}},
    {.name = "unsubscribe",
     .arity = -1,
     .flags = kListens,
     .handler = HandleUnsubscribe,
     .group = "pubsub",
     .summary = "Stops to listen to channels, without arguments to all.",
     .syntax = "[channel ...]",
     .complexity = "O(N) for N channels",
     .redis = {.flags = "noscript loading stale"}},
};

}  // namespace

absl::Span<const Command> PubSubCommands() { return kPubsubRows; }

}  // namespace varve
