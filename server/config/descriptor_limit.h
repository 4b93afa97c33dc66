// The process's limit on open files. Each client takes one descriptor, and the store takes the
// rest.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <cstddef>

namespace varve {

// Raises the limit as far as the system lets us, since a store may have many files. How many of
// `wanted` clients fit into it.
size_t FitClients(size_t wanted);

}  // namespace varve
