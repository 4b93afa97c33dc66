// Segments: a good one is changed, its checksums are made right again, and it is read in every way.
// Nothing crashes and everything ends; and where the verifier finds nothing wrong, walking both
// ways, seeking and looking up agree.
//
//   input  = [ image: 1 ][ checksums to be left as they are: 1, a bit for each Part ][ bytes cut
//          off the end: 2 ] changes
//   Bit 7 of the second byte leaves that of the dictionary as it is.
//   change = [ part: 1 ][ offset in it, modulo its size: 2 ][ size less 1: 1, modulo 8 ][ bytes ]
//            or, for part kNewFooter: [ piece: takes the place of the footer ]
//   Image 255: the bytes behind the first four are the file as it is.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/compression/dictionary_training.h"
#include "db/compression/value_codec.h"
#include "db/compression/value_decoder.h"
#include "db/format/file_names.h"
#include "db/format/record_format.h"
#include "db/segment/segment.h"
#include "db/segment/segment_builder.h"
#include "db/segment/segment_caches.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_format.h"
#include "tools/dump.h"
#include "tools/segment_verifier.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/memory_file_system.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/hash.h"

namespace varve::fuzz {
namespace {

using testing::MemoryFileSystem;

constexpr uint64_t kNumber = 7;
constexpr uint8_t kRawImage = 255;
constexpr size_t kMostSteps = 100'000;
constexpr uint64_t kMostPlainBytes = uint64_t{1} << 20;

enum Part : uint8_t {
  kData,
  kTable,
  kFences,
  kRangeTombstones,
  kFooter,
  kTail,
  kParts,
  kNewFooter = kParts,
  kDictionary  // changed where the input says kNewFooter + 1
};

struct OwnedRecord {
  std::string key, value;
  SequenceNumber sequence;
  RecordKind kind;
  bool operator==(const OwnedRecord&) const = default;
};

// The record with its plain value; what can't be decompressed is empty.
OwnedRecord Copy(const RecordView& record) {
  std::string buffer;
  // A changed header may say any size up to that of the largest value.
  const bool is_sane = !IsCompressed(record) || PlainSizeOf(record.value) <= kMostPlainBytes;
  const auto value = is_sane ? PlainValueOf(record, &buffer)
                             : absl::StatusOr<std::string_view>(std::string_view());
  return {std::string(record.key), value.ok() ? std::string(*value) : std::string(),
          record.sequence, record.kind};
}

struct Image {
  SegmentInfo info;
  SegmentFooter footer;
  std::string bytes;

  struct Span {
    size_t begin, size;
  };
  Span SpanOf(uint8_t part) const {
    const size_t tail = bytes.size() - kSegmentTailSize;
    const size_t footer_begin = footer.range_tombstones_offset + footer.range_tombstones_size;
    switch (part) {
      case kData:
        return {0, footer.data_size};
      case kTable:
        return {footer.table_offset, footer.fences_offset - footer.table_offset};
      case kFences:
        return {footer.fences_offset, footer.fences_size};
      case kDictionary:
        return {footer.dictionary_offset(), footer.dictionary_size};
      case kRangeTombstones:
        return {footer.range_tombstones_offset, footer.range_tombstones_size};
      case kFooter:
        return {footer_begin, tail - footer_begin};
      default:
        return {tail, kSegmentTailSize};
    }
  }
};

std::string Key(int number) {
  return std::string(4, '\0') + "key:" + std::to_string(1000 + number);
}

Image Finished(SegmentBuilder* builder, MemoryFileSystem& files) {
  Image image;
  auto info = builder->Finish();
  VARVE_FUZZ_REQUIRE(info.ok());
  image.info = *std::move(info);
  image.bytes = files.files().at(SegmentPath("store", kNumber));
  const auto file = files.OpenForRead(SegmentPath("store", kNumber));
  auto footer = ReadSegmentFooter(**file, kNumber, image.bytes.size(), nullptr);
  VARVE_FUZZ_REQUIRE(footer.ok());
  image.footer = *std::move(footer);
  return image;
}

std::string Text(int number) {
  return "{\"name\":\"" + Key(number).substr(4) +
         "\",\"city\":\"Hamburg\",\"country\":\"Germany\",\"tags\":[\"regular\",\"newsletter\"],"
         "\"state\":\"" +
         (number % 3 == 0 ? "waiting" : "served") + "\"}";
}

const std::shared_ptr<const ValueDictionary>& Dictionary() {
  static const auto* const dictionary = [] {
    ValueSamples samples;
    for (int i = 0; i < 2000; ++i) samples.Add(Text(i * i % 977));
    return new auto(ChooseDictionary(samples, nullptr, kDefaultZstdLevel, 4096));
  }();
  return *dictionary;
}

// A segment of compressed values: with the dictionary, with zstd alone, with LZ4, and plain ones.
Image MakeCompressedImage(int keys) {
  MemoryFileSystem files;
  SegmentBuilder::Options options{
      .directory = "store", .number = kNumber, .dictionary = Dictionary()};
  auto builder = SegmentBuilder::Create(&files, options);
  VARVE_FUZZ_REQUIRE(builder.ok() && Dictionary() != nullptr);
  ValueCompressor with(Dictionary()), without(nullptr);
  for (int i = 0; i < keys; ++i) {
    const std::string key = Key(i);
    const std::string value = Text(i) + std::string(100, 'z');
    RecordView record{.key = key, .value = value, .sequence = static_cast<SequenceNumber>(i + 1)};
    const Compression zstd{CompressionMethod::kZstd, kDefaultZstdLevel};
    const std::string_view compressed = i % 4 == 0   ? with.Compress(zstd, value)
                                        : i % 4 == 1 ? without.Compress(zstd, value)
                                        : i % 4 == 2
                                            ? without.Compress({CompressionMethod::kLz4, 0}, value)
                                            : std::string_view();
    if (!compressed.empty()) {
      record.value = compressed;
      record.flags = kCompressed;
    }
    VARVE_FUZZ_REQUIRE((*builder)->Add(record).ok());
  }
  return Finished(builder->get(), files);
}

// `value_size` bytes a value; every third key is deleted, every fifth has older versions.
Image MakeImage(int keys, size_t value_size, bool tombstones, uint32_t block_size,
                bool shares_keys = false) {
  MemoryFileSystem files;
  SegmentBuilder::Options options;
  options.directory = "store";
  options.number = kNumber;
  options.block_size = block_size;
  options.shares_keys = shares_keys;
  auto builder = SegmentBuilder::Create(&files, options);
  VARVE_FUZZ_REQUIRE(builder.ok());
  const std::string value(value_size, 'v');
  for (int i = 0; i < keys; ++i) {
    for (int version = i % 5 == 4 ? 3 : 1; version > 0; --version) {
      const bool deleted = i % 3 == 2 && version == 1;
      const std::string key = Key(i);
      RecordView record{.key = key, .sequence = static_cast<SequenceNumber>(10 * i + version)};
      record.kind = deleted ? RecordKind::kTombstone : RecordKind::kValue;
      if (!deleted) record.value = value;
      if (i % 7 == 6) {
        record.flags = kHasExpiry | kHasMetadata;
        record.expiry_ms = 1;
        record.metadata = "m";
      }
      VARVE_FUZZ_REQUIRE((*builder)->Add(record).ok());
    }
  }
  if (tombstones) {
    VARVE_FUZZ_REQUIRE((*builder)->AddRangeTombstone({Key(1), Key(4), 1000}).ok());
    VARVE_FUZZ_REQUIRE((*builder)->AddRangeTombstone({Key(2), Key(9), 2000}).ok());
  }
  return Finished(builder->get(), files);
}

const std::vector<Image>& Images() {
  static const auto* const images =
      new std::vector<Image>{MakeImage(5, 10, false, 4096),      MakeImage(60, 200, true, 4096),
                             MakeImage(6, 3000, true, 4096),     MakeImage(0, 0, true, 4096),
                             MakeImage(3, 9000, false, 8192),    MakeCompressedImage(40),
                             MakeImage(60, 20, true, 4096, true)};
  return *images;
}

// Makes the checksums right for the parts as the image has them.
void RepairRecords(const Image& image, std::string* bytes) {
  for (size_t at = 0; at < std::min<size_t>(image.footer.data_size, bytes->size());) {
    const size_t size = RecordSize(std::string_view(*bytes).substr(at));
    if (size <= kRecordChecksumSize || size > bytes->size() - at) break;
    const std::string_view body =
        std::string_view(*bytes).substr(at + kRecordChecksumSize, size - kRecordChecksumSize);
    EncodeFixed32(bytes->data() + at, Checksum(body, kNumber));
    at += size;
  }
}

void RepairTable(const Image& image, std::string* bytes) {
  for (uint32_t page = 0; page < image.footer.table_pages; ++page) {
    char* const begin =
        bytes->data() + image.footer.table_offset + size_t{page} * kOffsetTablePageSize;
    EncodeFixed32(
        begin, Checksum({begin + 4, kOffsetTablePageSize - 4}, OffsetTablePageSeed(kNumber, page)));
  }
}

void RepairFences(const Image& image, std::string* bytes) {
  const auto [begin, size] = image.SpanOf(kFences);
  if (size == 0) return;
  const size_t chunks = (size + kSegmentPageSize + 3) / (kSegmentPageSize + 4);
  const std::string_view body = std::string_view(*bytes).substr(begin, size - 4 * chunks);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const uint64_t seed = SegmentPartSeed(kNumber, SegmentPart::kFences, chunk);
    EncodeFixed32(bytes->data() + begin + body.size() + 4 * chunk,
                  Checksum(body.substr(chunk * kSegmentPageSize, kSegmentPageSize), seed));
  }
}

void RepairRangeTombstones(const Image& image, std::string* bytes) {
  const auto [begin, size] = image.SpanOf(kRangeTombstones);
  if (size < 4) return;
  EncodeFixed32(bytes->data() + begin + size - 4,
                Checksum(std::string_view(*bytes).substr(begin, size - 4),
                         SegmentPartSeed(kNumber, SegmentPart::kRangeTombstones)));
}

void RepairDictionary(const Image& image, std::string* bytes) {
  const auto [begin, size] = image.SpanOf(kDictionary);
  if (size < kDictionaryHeaderSize) return;
  EncodeFixed32(bytes->data() + begin,
                Checksum(std::string_view(*bytes).substr(begin + 4, size - 4),
                         SegmentPartSeed(kNumber, SegmentPart::kDictionary)));
}

void RepairEnd(size_t footer_begin, bool footer, bool tail, std::string* bytes) {
  char* const end = bytes->data() + bytes->size() - kSegmentTailSize;
  const std::string_view body(bytes->data() + footer_begin,
                              static_cast<size_t>(end - bytes->data()) - footer_begin);
  if (footer)
    EncodeFixed32(end + 16, Checksum(body, SegmentPartSeed(kNumber, SegmentPart::kFooter)));
  if (tail)
    EncodeFixed32(end + 20, Checksum({end, 20}, SegmentPartSeed(kNumber, SegmentPart::kTail)));
}

std::string Changed(const Image& image, uint8_t left, Input* input) {
  std::string bytes = image.bytes;
  const size_t footer_begin = image.SpanOf(kFooter).begin;
  while (!input->empty()) {
    const uint8_t part = input->Byte() % (kDictionary + 1);
    if (part == kNewFooter) {
      const std::string footer(input->Piece());
      const std::string tail = bytes.substr(bytes.size() - kSegmentTailSize);
      bytes.resize(footer_begin);
      bytes.append(footer).append(tail);
      EncodeFixed32(bytes.data() + bytes.size() - kSegmentTailSize + 8,
                    static_cast<uint32_t>(footer.size()));
      continue;
    }
    Image::Span span = image.SpanOf(part);
    if (part == kTail) span.begin = bytes.size() - kSegmentTailSize;
    const size_t offset = input->Short();
    const std::string_view change = input->Take(1 + input->Byte() % 8);
    if (span.size == 0) continue;
    for (size_t i = 0; i < change.size(); ++i) {
      const size_t at = span.begin + (offset + i) % span.size;
      if (at < bytes.size()) bytes[at] = change[i];
    }
  }
  const auto repaired = [left](Part part) { return (left >> part & 1) == 0; };
  if (repaired(kData)) RepairRecords(image, &bytes);
  if (repaired(kTable)) RepairTable(image, &bytes);
  if (repaired(kFences)) RepairFences(image, &bytes);
  if ((left & 0x80) == 0) RepairDictionary(image, &bytes);
  if (repaired(kRangeTombstones)) RepairRangeTombstones(image, &bytes);
  RepairEnd(footer_begin, repaired(kFooter), repaired(kTail), &bytes);
  return bytes;
}

std::vector<OwnedRecord> Walk(Segment* segment, bool fill_cache, bool forward, bool* good) {
  std::vector<OwnedRecord> records;
  const std::unique_ptr<InternalIterator> iterator = segment->NewIterator(fill_cache);
  size_t steps = 0;
  for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
       forward ? iterator->Next() : iterator->Prev()) {
    VARVE_FUZZ_REQUIRE(++steps < kMostSteps);
    records.push_back(Copy(iterator->record()));
  }
  *good = iterator->status().ok();
  if (!forward) std::reverse(records.begin(), records.end());
  return records;
}

// Looks every key up and seeks to it; `records`, where all is well, says what must come.
void LookUp(Segment* segment, const std::vector<OwnedRecord>& records, bool verified,
            bool fill_cache) {
  const std::unique_ptr<InternalIterator> iterator = segment->NewIterator(fill_cache);
  FoundRecord found;
  for (const OwnedRecord& record : records) {
    const uint64_t hash = HashKey(record.key);
    segment->PrefetchTable(hash);
    const bool may_contain = segment->MayContain(hash);
    const auto result = segment->Get(record.key, hash, record.sequence, fill_cache, &found);
    if (hash % 2 == 0) {  // the guides of cached blocks lead what is prepared
      using SeekStep = InternalIterator::SeekStep;
      for (const SeekStep step :
           {SeekStep::kFindPlace, SeekStep::kFetchPlace, SeekStep::kFetchRecord})
        iterator->PrepareSeek(record.key, step);
    }
    iterator->Seek(record.key, record.sequence);
    if (iterator->Valid()) (void)Copy(iterator->record());
    if (!verified) continue;
    VARVE_FUZZ_REQUIRE(may_contain && result.ok() && *result && Copy(found.record) == record);
    VARVE_FUZZ_REQUIRE(iterator->Valid() && Copy(iterator->record()) == record);
  }
}

void ReadInEveryWay(MemoryFileSystem* files, const SegmentInfo& info, bool verified) {
  for (const size_t cache : {size_t{0}, size_t{1} << 20}) {
    SegmentCaches caches(cache, cache);
    const auto segment = Segment::Open(files, "store", info, &caches);
    VARVE_FUZZ_REQUIRE(segment.ok() || !verified);
    if (!segment.ok()) continue;
    const bool fill_cache = cache != 0;
    bool good = false;
    std::vector<OwnedRecord> forward = Walk(segment->get(), fill_cache, true, &good);
    VARVE_FUZZ_REQUIRE(good || !verified);
    const std::vector<OwnedRecord> backward = Walk(segment->get(), fill_cache, false, &good);
    VARVE_FUZZ_REQUIRE((good && forward == backward && forward.size() == info.entries) ||
                       !verified);
    if (forward.empty())
      forward = {{Key(0), "", 1, RecordKind::kValue}, {Key(4), "", 41, RecordKind::kValue}};
    LookUp(segment->get(), forward, verified && info.entries > 0, fill_cache);
    for (const OwnedRecord& record : forward) {
      (void)(*segment)->range_tombstones()->CoveringSequence(record.key, kMaxSequence);
    }
  }
}

void Run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t which = input.Byte();
  const uint8_t left = input.Byte();
  const size_t cut = input.Short();
  const Image& image = Images()[which % Images().size()];
  std::string content =
      which == kRawImage ? std::string(input.Rest()) : Changed(image, left, &input);
  content.resize(content.size() - std::min(cut, content.size()));
  SegmentInfo info = image.info;
  info.file_size = content.size();
  const std::string path = SegmentPath("store", kNumber);
  MemoryFileSystem files(MemoryFileSystem::Files{{path, std::move(content)}});
  // The manifest would say what the footer says.
  const auto footer =
      ReadSegmentFooter(**files.OpenForRead(path), kNumber, info.file_size, nullptr);
  if (footer.ok()) info = footer->info;
  const bool verified = VerifySegment(&files, path, info).ok();
  ReadInEveryWay(&files, info, verified);
  (void)DumpSegment(&files, path, [](std::string_view) {}).ok();
}

std::string Change(Part part, uint16_t offset, std::string_view bytes) {
  std::string change = {static_cast<char>(part), static_cast<char>(offset),
                        static_cast<char>(offset >> 8), static_cast<char>(bytes.size() - 1)};
  return change.append(bytes);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (char image = 0; image < static_cast<char>(Images().size()); ++image) {
    const std::string head = {image, 0, 0, 0};
    seeds.push_back(head);
    for (const Part part :
         {kData, kTable, kFences, kRangeTombstones, kFooter, kTail, kDictionary}) {
      seeds.push_back(head + Change(part, 0, "\1"));
      seeds.push_back(head + Change(part, 8, std::string(8, '\xff')));
      seeds.push_back(
          std::string{image, static_cast<char>(part == kDictionary ? 0x80 : 1 << part), 0, 0} +
          Change(part, 20, "x"));
    }
    std::string replaced = head + static_cast<char>(kNewFooter);
    const auto [begin, size] = Images()[static_cast<size_t>(image)].SpanOf(kFooter);
    AppendPiece(std::string_view(Images()[static_cast<size_t>(image)].bytes).substr(begin, size),
                &replaced);
    seeds.push_back(replaced);
    seeds.push_back({image, 0, 1, 0});
  }
  const std::string& smallest = Images()[3].bytes;
  seeds.push_back(std::string("\xff\0\0\0", 4) + smallest);
  return seeds;
}

const Announced kTarget({"segment", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
