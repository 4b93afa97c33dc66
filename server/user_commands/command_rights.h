// The catalog of commands by which users' rights are checked, made of the command table.
//
// Thread-safety: the catalog is built when it is first used and does not change after that.
#pragma once

#include "server/access/command_catalog.h"

namespace varve {

const CommandCatalog& AccessCatalog();

}  // namespace varve
