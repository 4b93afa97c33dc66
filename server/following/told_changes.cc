#include "server/following/told_changes.h"

#include "varve/replicated_changes.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

void Note(const ChangeOperation& operation, WrittenKeys* written) {
  switch (operation.kind) {
    case Kind::kDeleteRange:
      return written->AddRange(operation.space, operation.key, operation.value);
    case Kind::kFlush:
    case Kind::kIngest:
    case Kind::kCreate:
    case Kind::kDrop:
    case Kind::kSwap:
    case Kind::kClone:
      return written->AddSpace(operation.space);
    default:
      return written->AddKey(operation.space, operation.key);
  }
}

// The name of the command that did it is not told by the primary: a follower says what a plain one
// would.
void Notify(const ChangeOperation& operation, KeyspaceEvents* events) {
  const auto send = [&](KeyEventClass which, std::string_view name) {
    if (events->Tells(which)) events->Send(name, operation.space, operation.key, kNoSequence);
  };
  switch (operation.kind) {
    case Kind::kSet:
      return send(kStringEvent, "set");
    case Kind::kExpire:
      return send(kGenericEvent, operation.expiry_ms == kNoExpiry ? "persist" : "expire");
    case Kind::kDelete:
    case Kind::kEvicted:
      return send(kGenericEvent, "del");
    case Kind::kExpired:
      return send(kExpiredEvent, "expired");
    default:
      return;
  }
}

}  // namespace

void TellOfReplicated(ServerState& server, std::string_view blocks) {
  Clients& clients = server.clients;
  const bool tells = clients.events.Tells(kStringEvent) || clients.events.Tells(kGenericEvent) ||
                     clients.events.Tells(kExpiredEvent);
  if (!clients.tracking.Any() && !tells) return;
  WrittenKeys written;
  // The store has taken the blocks, so they are whole.
  (void)ForEachReplicated(blocks, [&](const Change& commit) {
    for (const ChangeOperation& operation : commit.operations) {
      Note(operation, &written);
      if (tells) Notify(operation, &clients.events);
      // What is behind the swapped namespace is another one, too, whose number is not told here.
      if (operation.kind == Kind::kSwap) clients.tracking.InvalidateAll();
    }
  });
  if (clients.tracking.Any()) clients.tracking.Invalidate(&written, /*writer=*/0);
}

}  // namespace varve
