// Manifests: what is accepted has exactly one form, so encoding what was decoded gives the same
// bytes.
//
//   input = [ how: 1; bit 0: the rest is the whole file, else its fields, under a right header;
//   bit 1: that of a store with history; bit 2: that of one whose segments share keys ][ rest ]
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/version/manifest.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve::fuzz {
namespace {

constexpr size_t kHeaderSize = 24;

// An empty manifest's header over other fields.
std::string WithHeader(std::string_view fields, bool has_history, bool shares_keys) {
  Manifest empty;
  empty.has_history = has_history || shares_keys;
  empty.shares_keys = shares_keys;
  empty.history_id = 1;
  std::string bytes = EncodeManifest(empty).substr(0, kHeaderSize);
  bytes += fields;
  EncodeFixed64(bytes.data() + 16, fields.size());
  EncodeFixed32(bytes.data() + 12,
                Checksum(std::string_view(bytes).substr(16), DecodeFixed32(bytes.data() + 8)));
  return bytes;
}

void Run(std::string_view input) {
  Input parts(input);
  const uint8_t how = parts.Byte();
  const bool whole = (how & 1) != 0;
  const std::string_view rest = parts.Rest();
  const ExactCopy bytes(whole ? std::string(rest)
                              : WithHeader(rest, (how & 2) != 0, (how & 4) != 0));
  const absl::StatusOr<Manifest> manifest = DecodeManifest(bytes.view(), "MANIFEST");
  if (!manifest.ok()) {
    VARVE_FUZZ_REQUIRE(absl::IsDataLoss(manifest.status()));
    return;
  }
  const std::string again = EncodeManifest(*manifest);
  const bool is_older = DecodeFixed32(again.data() + 8) != DecodeFixed32(bytes.view().data() + 8);
  VARVE_FUZZ_REQUIRE(is_older || again == bytes.view());
  VARVE_FUZZ_REQUIRE(EncodeManifest(DecodeManifest(again, "MANIFEST").value()) == again);
}

SegmentInfo Segment(uint64_t number, const std::string& smallest, const std::string& largest) {
  SegmentInfo info;
  info.number = number;
  info.file_size = 8192 + number;
  info.entries = 3;
  info.tombstones = 1;
  info.smallest = std::string(4, '\0') + smallest;
  info.largest = std::string(4, '\0') + largest;
  info.smallest_sequence = 1;
  info.largest_sequence = number;
  info.live.Add(0, {2, 300});
  return info;
}

std::vector<std::string> Seeds() {
  std::vector<Manifest> manifests(8);
  manifests[1].store_id = 0x5EED;
  manifests[1].namespaces = {{0, 0}, {1, 7}};
  manifests[1].log_ends = {{1, 4096, 10}, {3, 8192, 300}};
  manifests[1].clean_end = true;
  manifests[2].levels = {{{Segment(5, "a", "c"), Segment(6, "d", "f")}, {Segment(4, "", "z")}},
                         {},
                         {{Segment(2, "k", "k")}}};
  manifests[2].levels[0][0][0].largest_is_exclusive = true;
  manifests[2].levels[0][0][0].range_tombstones = 1;
  manifests[3] = manifests[2];
  manifests[3].flushed_sequence = 1u << 20;
  GenerationKeyCounts change;
  change.Add(0, {-2, -300});
  change.Add(9, {1, 5});
  manifests[3].counted_groups = {{{4, 5, 6}, change}, {{2}, {}}};
  manifests[4] = manifests[3];
  manifests[4].levels[2][0][0].live.Add(3, {2, 300, 1, absl::int128(1) << 66});
  manifests[4].levels[2][0][0].expiry_is_counted = false;
  manifests[5] = manifests[4];
  manifests[5].has_history = true;
  manifests[5].history_id = 0x5EED;
  manifests[5].times = {12, 300};
  manifests[6] = manifests[5];
  manifests[6].shares_keys = true;
  manifests[7].has_history = manifests[7].shares_keys = true;
  manifests[7].history_id = 1;
  manifests[7].descriptions = {{.id = kFirstNamedNamespace,
                                .name = "a",
                                .options = {.eviction = {EvictionOrder::kLru, false}}}};
  std::vector<std::string> seeds;
  for (const Manifest& manifest : manifests) {
    const std::string bytes = EncodeManifest(manifest);
    const char how = manifest.shares_keys ? '\4' : manifest.has_history ? '\2' : '\0';
    seeds.push_back(how + bytes.substr(kHeaderSize));
    seeds.push_back('\1' + bytes);
  }
  return seeds;
}

const Announced kTarget({"manifest", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
