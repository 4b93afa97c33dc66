// The groups of commands. The rows of a group stand beside its handlers, and the command table
// joins the groups.
//
// A handler writes exactly one reply (or hands over a ReplyStream). `arguments[0]` is the command's
// name; their number fits the command's arity.
//
// Thread-safety: The rows are constant.
#pragma once

#include "absl/types/span.h"
#include "server/commands/command_table.h"

namespace varve {

absl::Span<const Command> AccessCommands();       // server/user_commands
absl::Span<const Command> AclCommands();          // server/user_commands
absl::Span<const Command> BackupCommands();       // server/copy_commands
absl::Span<const Command> BitCommands();          // commands_bit.cc
absl::Span<const Command> ChangeCommands();       // server/history_commands
absl::Span<const Command> ClientCommands();       // commands_client.cc
absl::Span<const Command> CommandCommands();      // commands_command.cc
absl::Span<const Command> ConfigCommands();       // commands_config.cc
absl::Span<const Command> ConnectionCommands();   // commands_connection.cc
absl::Span<const Command> DatabaseCommands();     // commands_database.cc
absl::Span<const Command> DifferenceCommands();   // server/history_commands
absl::Span<const Command> DumpCommands();         // commands_dump.cc
absl::Span<const Command> ExpiryCommands();       // commands_expiry.cc
absl::Span<const Command> FailoverCommands();     // server/replica_commands
absl::Span<const Command> FeedCommands();         // server/history_commands
absl::Span<const Command> FunctionCommands();     // commands_function.cc
absl::Span<const Command> IngestCommands();       // server/history_commands
absl::Span<const Command> KeyCommands();          // commands_key.cc
absl::Span<const Command> KeyListCommands();      // commands_key_list.cc
absl::Span<const Command> LcsCommands();          // commands_lcs.cc
absl::Span<const Command> MemoryCommands();       // commands_memory.cc
absl::Span<const Command> MetadataCommands();     // server/history_commands
absl::Span<const Command> MonitoringCommands();   // commands_monitoring.cc
absl::Span<const Command> NamespaceCommands();    // commands_namespace.cc
absl::Span<const Command> NumberCommands();       // commands_number.cc
absl::Span<const Command> PastCommands();         // server/history_commands
absl::Span<const Command> PathCommands();         // server/history_commands
absl::Span<const Command> PubSubCommands();       // commands_pubsub.cc
absl::Span<const Command> PurgeCommands();        // server/history_commands
absl::Span<const Command> RangeCommands();        // commands_range.cc
absl::Span<const Command> ReplicaCommands();      // server/replica_commands
absl::Span<const Command> ReplicationCommands();  // server/replica_commands
absl::Span<const Command> SaveCommands();         // commands_save.cc
absl::Span<const Command> ServerCommands();       // commands_server.cc
absl::Span<const Command> StreamCommands();       // server/history_commands
absl::Span<const Command> StringCommands();       // commands_string.cc
absl::Span<const Command> TransactionCommands();  // commands_transaction.cc
absl::Span<const Command> UndoCommands();         // server/history_commands
absl::Span<const Command> WaitCommands();         // server/replica_commands
absl::Span<const Command> WatchCommands();        // server/history_commands

}  // namespace varve
