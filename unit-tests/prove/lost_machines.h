// Loses a machine again and again: a server is written to, killed, and its directory removed. It
// comes back from its archive, which was written meanwhile by an archiver that is killed, too, and
// has caught up with the restarted server before that is lost for good; or from a backup that was
// taken under load. Then the writers go on with what came back.
//
// From an archive, everything that was acknowledged or shown to a reader comes back; from a backup,
// what was acknowledged before it began. What came later is there up to one moment, or is gone.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <string>

#include "unit-tests/prove/fleet.h"
#include "unit-tests/prove/kill_cycles.h"

namespace varve::prove {

struct LossFigures {
  Figures archives;
  Figures backups;
};

// Ends with the first cycle in which something is wrong.
LossFigures RunLostMachines(const CycleOptions& options, const std::string& client_main);

}  // namespace varve::prove
