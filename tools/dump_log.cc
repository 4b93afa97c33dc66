#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/format/namespace_change.h"
#include "db/format/value_handle.h"
#include "tools/dump.h"
#include "tools/dump_printer.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kShownBytes = 80;

std::string Shown(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kShownBytes);
  return fmt::format("\"{}\"{}", absl::CHexEscape(absl::string_view(head.data(), head.size())),
                     head.size() < bytes.size() ? "..." : "");
}

// A tree key: "generation 0 "key"".
std::string ShownKey(std::string_view tree_key) {
  if (tree_key.size() < kGenerationSize) return Shown(tree_key);
  return fmt::format("generation {} {}", GenerationOf(tree_key), Shown(UserKeyOf(tree_key)));
}

class LogDumper {
 public:
  LogDumper(std::string path, std::string bytes, const DumpLine& print)
      : path_(std::move(path)), bytes_(std::move(bytes)), printer_(print) {}

  // Prints the file and returns how many places of it are damaged.
  size_t Run() {
    printer_.Title(fmt::format("{}: {} bytes", path_, bytes_.size()));
    if (!DumpHeader()) return printer_.damaged();
    uint64_t good_end = kLogPageSize;  // behind the last good block
    for (uint64_t offset = kLogPageSize; offset < bytes_.size();) {
      const std::optional<LogBlockHeader> block = BlockAt(offset);
      if (!block) {
        offset += kLogBlockAlignment;
        continue;
      }
      if (offset != LogBlockAlign(good_end) && offset != LogPageAlign(good_end)) {
        DumpLostBlock(good_end, offset);
      }
      DumpBlock(offset, *block);
      offset = good_end = LogBlockAlign(
          std::min<uint64_t>(bytes_.size(), offset + kLogBlockHeaderSize + block->payload_size));
    }
    DumpRest(good_end);
    return printer_.damaged();
  }

 private:
  // False: there can't be any block.
  bool DumpHeader() {
    if (bytes_.size() < kLogPageSize ||
        std::all_of(bytes_.begin(), bytes_.begin() + kLogPageSize, IsZero)) {
      printer_.Line(0, "never begun");
      return false;
    }
    // Where the page is damaged both numbers may still be right; the blocks' checksums will tell.
    store_id_ = DecodeFixed64(bytes_.data() + 24);
    epoch_ = DecodeFixed64(bytes_.data() + 16);
    const std::string name = std::filesystem::path(path_).filename().string();
    if (const std::optional<uint64_t> number = ParseLogFileName(name)) epoch_ = *number;
    const absl::Status header = CheckLogHeaderPage(std::string_view(bytes_).substr(0, kLogPageSize),
                                                   path_, epoch_, store_id_);
    if (!header.ok()) printer_.Damage(0, std::string(header.message()));
    printer_.Line(0, fmt::format("header: file {}, store {:016x}", epoch_, store_id_));
    return true;
  }

  std::optional<LogBlockHeader> BlockAt(uint64_t offset) const {
    return DecodeLogBlockHeader(std::string_view(bytes_).substr(offset), epoch_, store_id_, offset);
  }

  // Between `begin` and the block at `end` something should be that can't be read.
  void DumpLostBlock(uint64_t begin, uint64_t end) {
    // A block begins at a multiple of 8, or of a page where the one before was synced.
    uint64_t place = LogBlockAlign(begin);
    if (HeaderIsZero(place)) place = LogPageAlign(begin);
    if (place + kLogBlockHeaderSize > end || HeaderIsZero(place)) {
      return printer_.Damage(begin, fmt::format("no block up to {}", end));
    }
    printer_.Damage(place, fmt::format("no block that can be read up to {}: {}", end,
                                       DescribeBlockHeader(place)));
    // What lay in it may be whole none the less.
    LogBlockHeader all;
    all.last = kMaxSequence;
    for (uint64_t position = place + kLogBlockHeaderSize;;) {
      const size_t size = BatchAt(position, end, all);
      if (size == 0) return;
      DumpBatch(position);
      position += size;
    }
  }

  bool HeaderIsZero(uint64_t offset) const {
    const std::string_view header =
        std::string_view(bytes_).substr(std::min<uint64_t>(offset, bytes_.size()));
    const std::string_view bytes = header.substr(0, kLogBlockHeaderSize);
    return std::all_of(bytes.begin(), bytes.end(), IsZero);
  }

  // Of a header that is damaged. There is room for it.
  std::string DescribeBlockHeader(uint64_t offset) const {
    const std::string_view header = std::string_view(bytes_).substr(offset, kLogBlockHeaderSize);
    std::string text =
        DescribeChecksums(DecodeFixed32(header.data()), LogBlockChecksum(header, store_id_, offset),
                          kLogBlockHeaderSize);
    if (const uint64_t epoch = DecodeFixed64(header.data() + 8); epoch != epoch_) {
      text += fmt::format("; it says that it is of file {}", epoch);
    }
    return "its header has " + text;
  }

  void DumpBlock(uint64_t offset, const LogBlockHeader& block) {
    printer_.Line(offset,
                  fmt::format("block: {} bytes, sequences {} to {}, durable up to {}",
                              block.payload_size, block.first, block.last, block.durable_mark));
    uint64_t position = offset + kLogBlockHeaderSize;
    const uint64_t end = position + block.payload_size;
    const uint64_t available = std::min<uint64_t>(end, bytes_.size());
    if (end > available)
      printer_.Damage(available, fmt::format("the file ends here, {} bytes before the block does",
                                             end - available));
    while (position < available) {
      const size_t size = BatchAt(position, available, block);
      if (size > 0) {
        DumpBatch(position);
        position += size;
        continue;
      }
      uint64_t next = position + 1;
      while (next < available && BatchAt(next, available, block) == 0) ++next;
      printer_.Damage(position,
                      fmt::format("batch: {}; {} bytes of its block are skipped",
                                  DescribeDamagedBatch(position, available), next - position));
      position = next;
    }
  }

  // The size of the batch at `position`, of a block that ends at `end`; 0 if there is none. Cheap
  // where there is none.
  size_t BatchAt(uint64_t position, uint64_t end, const LogBlockHeader& block) const {
    if (position + kBatchHeaderSize > end) return 0;
    const SequenceNumber first = DecodeFixed64(bytes_.data() + position + 8);
    if (first < block.first || first > block.last) return 0;
    BatchHeader header;
    std::string_view operations;
    return DecodeBatch(std::string_view(bytes_).substr(position, end - position), &header,
                       &operations);
  }

  std::string DescribeDamagedBatch(uint64_t position, uint64_t end) const {
    const std::string_view rest = std::string_view(bytes_).substr(position, end - position);
    if (rest.size() < kBatchHeaderSize) return "cut short in its header";
    const uint64_t size = kBatchHeaderSize + DecodeFixed32(rest.data() + 4);
    if (size > rest.size())
      return fmt::format("cut short, {} of {} bytes are here", rest.size(), size);
    return DescribeChecksums(DecodeFixed32(rest.data()), BatchChecksum(rest.substr(0, size)), size);
  }

  // A batch that was found whole.
  void DumpBatch(uint64_t offset) {
    BatchHeader header;
    std::string_view operations;
    DecodeBatch(std::string_view(bytes_).substr(offset), &header, &operations);
    if (header.instant_ms != 0) {
      return printer_.Line(offset, fmt::format("  time: sequence {} and what follows, {} ms",
                                               header.first, header.instant_ms));
    }
    printer_.Line(offset, fmt::format("  batch: sequence {}, {} operations, {} bytes", header.first,
                                      header.count, header.size));
    BatchReader reader(operations);
    RecordView operation;
    SequenceNumber sequence = header.first;
    while (reader.Next(&operation))
      printer_.Line(offset, fmt::format("    {} {}", sequence++, DescribeRecord(operation)));
    if (!reader.ok()) printer_.Damage(offset, "batch: its operations make no sense");
  }

  void DumpRest(uint64_t begin) {
    if (begin >= bytes_.size()) return;
    const bool empty =
        std::all_of(bytes_.begin() + static_cast<ptrdiff_t>(begin), bytes_.end(), IsZero);
    printer_.Line(
        begin,
        fmt::format("{} bytes: {}", bytes_.size() - begin,
                    empty
                        ? "empty"
                        : "no block (remains of an earlier life of the file, or of a torn write)"));
  }

  static bool IsZero(char c) { return c == 0; }

  const std::string path_;
  const std::string bytes_;
  DumpPrinter printer_;
  uint64_t store_id_ = 0;
  uint64_t epoch_ = 0;
};

absl::StatusOr<size_t> DumpFile(FileSystem* file_system, const std::string& path,
                                const DumpLine& print) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string bytes(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, size, bytes.data()));
  bytes.resize(read);
  return LogDumper(path, std::move(bytes), print).Run();
}

}  // namespace

std::string DescribeChecksums(uint32_t stored, uint32_t given, uint64_t bytes) {
  return fmt::format("checksum {:08x}, but its {} bytes give {:08x}", stored, bytes, given);
}

namespace {

std::string DescribeGroups(const KeyGrouping& grouping) {
  if (!grouping.declared()) return "";
  if (grouping.kind == KeyGrouping::Kind::kTogether) return ", one group";
  return ", groups by " + Shown({&grouping.delimiter, 1});
}

std::string DescribeChange(const RecordView& record) {
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(record);
  if (!change)
    return fmt::format("a change of a namespace that makes no sense ({} bytes)",
                       record.value.size());
  const NamespaceId id = change->space.id;
  const NamespaceOptions& options = change->space.options;
  const auto described = [&] {
    constexpr std::string_view kModes[] = {"always", "everysec", "no"};
    return fmt::format(
        "{}, at most {} bytes and {} keys, expiry {} ms, sync {}, value separation {}, "
        "compression {}{}",
        change->space.name.empty() ? "no name" : "name " + Shown(change->space.name),
        options.max_bytes, options.max_keys, options.default_expiry_ms,
        options.sync ? kModes[static_cast<size_t>(*options.sync)] : "of the store",
        options.value_separation_size,
        options.compression ? FormatCompression(*options.compression) : "of the store",
        DescribeGroups(options.grouping));
  };
  switch (change->verb) {
    case NamespaceChange::Verb::kCreate:
      return fmt::format("create namespace {} in generation {}: {}", id, change->generation,
                         described());
    case NamespaceChange::Verb::kAlter:
      return fmt::format("alter namespace {}: {}", id, described());
    case NamespaceChange::Verb::kDrop:
      return fmt::format("drop namespace {}", id);
    case NamespaceChange::Verb::kClone:
      return fmt::format("clone namespace {}{} as namespace {} in generation {}: {}", change->other,
                         change->past ? fmt::format(" as of sequence {} in generation {}",
                                                    change->past->version, change->past->parent)
                                      : "",
                         id, change->generation, described());
    case NamespaceChange::Verb::kSwap:
      break;
  }
  return fmt::format("swap what namespaces {} and {} hold", id, change->other);
}

std::string DescribePut(const RecordView& record) {
  if (!IsSeparated(record)) {
    return fmt::format("put {} = {} ({} bytes)", ShownKey(record.key), Shown(record.value),
                       record.value.size());
  }
  ValueHandle handle;
  if (!DecodeValueHandle(record.value, &handle))
    return fmt::format("put {} = a place that makes no sense", ShownKey(record.key));
  return fmt::format("put {} = {} bytes, in file {} at offset {}", ShownKey(record.key),
                     handle.value_size, handle.file_number, handle.offset);
}

std::string_view NameOfCause(WriteCause cause) {
  switch (cause) {
    case WriteCause::kExpiryChange:
      return ", for its expiry";
    case WriteCause::kMetadataChange:
      return ", for its metadata";
    case WriteCause::kExpired:
      return ", which has expired";
    case WriteCause::kEvicted:
      return ", to make room";
    case WriteCause::kWrite:
      break;
  }
  return "";
}

}  // namespace

std::string DescribeRecord(const RecordView& record) {
  std::string text;
  switch (record.kind) {
    case RecordKind::kValue:
      text = DescribePut(record);
      break;
    case RecordKind::kTombstone:
      text = fmt::format("delete {}", ShownKey(record.key));
      break;
    case RecordKind::kRangeTombstone:
      text = fmt::format("delete range from {} up to {}", ShownKey(record.key),
                         ShownKey(record.value));
      break;
    case RecordKind::kSwitchGeneration:
      text = fmt::format("empty namespace {}, which goes on as generation {}",
                         record.key.size() == 4 ? GenerationOf(record.key) : 0,
                         record.value.size() == 4 ? GenerationOf(record.value) : 0);
      break;
    case RecordKind::kChangeNamespace:
      text = DescribeChange(record);
      break;
    case RecordKind::kClockMark:
      text = fmt::format("the clock has been at {} ms",
                         record.value.size() == 8 ? DecodeFixed64(record.value.data()) : 0);
      break;
    case RecordKind::kChangeFeed:
      text = fmt::format("change the feed {}", Shown(UserKeyOf(record.key)));
      break;
    default:
      text = fmt::format("kind {} {} ({} bytes)", static_cast<int>(record.kind),
                         ShownKey(record.key), record.value.size());
  }
  if (record.cause != WriteCause::kWrite) text += NameOfCause(record.cause);
  if (record.flags & kHasExpiry) text += fmt::format(", expires at {} ms", record.expiry_ms);
  if (record.flags & kHasMetadata) text += fmt::format(", metadata {}", Shown(record.metadata));
  return text;
}

absl::Status DumpLog(FileSystem* file_system, const std::string& path, const DumpLine& print) {
  std::vector<std::string> paths = {path};
  if (std::filesystem::is_directory(path)) {
    paths.clear();
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(path));
    for (const std::string& name : names) {
      if (ParseLogFileName(name)) paths.push_back(path + "/" + name);
    }
    if (paths.empty())
      return absl::NotFoundError(fmt::format("{}: there is no log file in it", path));
  }
  size_t damaged = 0;
  for (const std::string& file : paths) {
    VARVE_ASSIGN_OR_RETURN(const size_t places, DumpFile(file_system, file, print));
    damaged += places;
  }
  if (damaged > 0) return absl::DataLossError(fmt::format("{}: {} damaged places", path, damaged));
  return absl::OkStatus();
}

}  // namespace varve
