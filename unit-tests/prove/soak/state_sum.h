// A sum over what namespaces hold, by which two servers, or a server and what a reader of its
// changes made up, are compared. It is the same in whatever order keys are added, and a key that
// goes is taken off again. Keys, values and names of namespaces count; versions and expiries do
// not.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace varve::prove {

// What a key and its value add to the sum of their namespace.
uint64_t RecordSum(std::string_view key, std::string_view value);
// What a namespace adds to the sum of all, given the sum of its records.
uint64_t NamespaceSum(std::string_view name, uint64_t records);

// Returns the sum of the records in a namespace of a server, read in one snapshot.
absl::StatusOr<uint64_t> ReadRecordSum(uint16_t port, const std::string& name);
// Returns the first two databases and the names of all namespaces.
absl::StatusOr<std::vector<std::string>> ReadPlaces(uint16_t port);
// Returns the sum of all these of a server but those left out.
absl::StatusOr<uint64_t> ReadStateSum(uint16_t port, const std::set<std::string>& left_out);

}  // namespace varve::prove
