// client_main: requests to a running server, for people and scripts, and a look into the files of
// stores, backups and archives. This folder is the one of client/ that sees the engine, as it links
// both: the client's library knows nothing of db/.
#include "client/cli/run.h"
#include "client/program/archive_commands.h"
#include "client/program/backup_commands.h"
#include "client/program/offline_commands.h"
#include "client/program/restore_command.h"

namespace varve {
namespace {

constexpr FileCommand kFileCommands[] = {
    {"dump-log", "FILE|DIR", 1, DumpLogOf},
    {"dump-segment", "FILE", 1, DumpSegmentOf},
    {"dump-manifest", "DIR", 1, DumpManifestOf},
    {"verify", "DIR", 1, VerifyOf},
    {"repair", "DIR", 1, RepairOf},
    {"backup", "DEST", 1, BackupOf},
    {"backups", "DEST", 1, ListBackupsOf},
    {"restore", "DEST NEWDIR", 2, RestoreOf},
    {"archive", "DEST", 1, ArchiveOf},
    {"archive-check", "DEST", 1, CheckArchiveOf},
};

}  // namespace
}  // namespace varve

int main(int argc, char** argv) {
  return varve::RunClient(argc, argv, varve::kFileCommands, varve::DescribeStoreFiles);
}
