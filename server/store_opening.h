// Opens the store that the settings choose.
//
// Thread-safety: One thread opens a store.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/settings.h"
#include "varve/store.h"

namespace varve {

// Opens the store over the HBase cluster that the settings name. InvalidArgument: the settings
// can't be meant. Unimplemented: this build has no client of HBase. Other errors: as
// HbaseClient::Open() and HbaseStore::Open(). Waits for the cluster.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Store>> OpenHbaseStore(const ServerConfig& config);

// Returns where the store of these settings is, for people.
std::string StorePlace(const ServerConfig& config);

}  // namespace varve
