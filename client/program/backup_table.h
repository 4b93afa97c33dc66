// Backups as lines of a table, of text or of JSON.
//
// Thread-safety: One thread at a time calls the functions that print; the others are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/console/output.h"
#include "tools/backup/backup_list.h"

namespace varve {

// The instant as a JSON string; null for 0, as of a store that keeps no times of its versions.
std::string JsonTime(uint64_t ms);

// One JSON object, without a line end.
std::string JsonOf(const BackupDescription& backup);

// A line for each. Raw: id, version, time, files, new and shared bytes, with tabs between them. The
// time is that of the seal, up to which a backup has everything.
void PrintBackups(const std::vector<BackupDescription>& backups, const Output& output);

}  // namespace varve
