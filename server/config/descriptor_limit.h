// The process's limit on open files: each client takes one descriptor, the store takes the rest.
// Thread-safe.
#pragma once

#include <cstddef>

namespace varve {

// Raises the limit as far as the system lets us, since a store may have many files. How many of
// `wanted` clients fit into it.
size_t FitClients(size_t wanted);

}  // namespace varve
