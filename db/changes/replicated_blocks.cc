#include "db/changes/replicated_blocks.h"

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/replicated_changes.h"

namespace varve {

absl::Status ForEachBlock(std::string_view bytes,
                          absl::FunctionRef<absl::Status(const ChangeBlock& block)> visit) {
  const auto cut_short = [] {
    return absl::DataLossError(fmt::format("{} are cut short", kFromPrimary));
  };
  ChangeBlock block;
  while (!bytes.empty()) {
    if (bytes.size() < kChangeBlockHeaderSize) return cut_short();
    VARVE_ASSIGN_OR_RETURN(const ChangeBlockHeader header,
                           DecodeChangeBlockHeader(bytes, kFromPrimary, 0, 0));
    const size_t size = kChangeBlockHeaderSize + header.payload_size;
    if (bytes.size() < size) return cut_short();
    VARVE_RETURN_IF_ERROR(DecodeChangeBlock(
        header, bytes.substr(0, kChangeBlockHeaderSize),
        bytes.substr(kChangeBlockHeaderSize, header.payload_size), kFromPrimary, 0, 0, &block));
    VARVE_RETURN_IF_ERROR(visit(block));
    bytes.remove_prefix(size);
  }
  return absl::OkStatus();
}

absl::Status ForEachReplicated(std::string_view blocks,
                               absl::FunctionRef<void(const Change& commit)> visit) {
  return ForEachBlock(blocks, [&](const ChangeBlock& block) {
    for (size_t at = 0; at < block.commits.size();) {
      ChangeCommit commit;
      if (!ReadCommit(block, &at, &commit)) break;  // the block was checked when it was decoded
      Change change{.version = commit.last, .instant_ms = commit.instant_ms};
      for (size_t next = 0; next < commit.operations.size();) {
        ChangeRecord record;
        if (!ReadChangeRecord(commit, &next, &record)) break;
        if (record.kind == kStoresOwn) continue;
        ShowOperation(block, record, /*keys_only=*/false, &change.operations.emplace_back());
      }
      if (!change.operations.empty()) visit(change);
    }
    return absl::OkStatus();
  });
}

}  // namespace varve
