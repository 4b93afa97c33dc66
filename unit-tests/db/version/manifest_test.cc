#include "db/version/manifest.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "fmt/format.h"
#include "type/version.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

SegmentInfo SegmentOf(uint64_t number, const std::string& smallest, const std::string& largest) {
  SegmentInfo info;
  info.number = number;
  info.file_size = 4096 * number;
  info.entries = 300;
  info.tombstones = 2;
  info.range_tombstones = 1;
  info.smallest = smallest;
  info.largest = largest;
  info.smallest_sequence = 10;
  info.largest_sequence = 310;
  return info;
}

Manifest Example() {
  Manifest manifest;
  manifest.store_id = 0x1122334455667788;
  manifest.next_file_number = 42;
  manifest.flushed_sequence = 310;
  manifest.next_generation = 5;
  manifest.namespaces = {{0, 1}, {7, 4}};
  manifest.log_ends = {{40, 65536, 350}};
  manifest.clean_end = true;
  SegmentInfo exclusive = SegmentOf(9, "\0\0\0\1n"s, "\0\0\0\2"s);
  exclusive.largest_is_exclusive = true;
  manifest.levels = {
      {{SegmentOf(12, "\0\0\0\1a"s, "\0\0\0\1b"s)}, {SegmentOf(11, "\0\0\0\1\0"s, "\0\0\0\1x"s)}},
      {},
      {{SegmentOf(8, "\0\0\0\1a"s, "\0\0\0\1m"s), exclusive}}};
  GenerationKeyCounts change;
  change.Add(1, {-3, 1000});
  manifest.counted_groups = {{{11, 12}, change}};
  manifest.descriptions = {{.id = 7, .options = {.max_keys = 1000, .sync = Durability::kNone}}};
  manifest.next_named_namespace = kFirstNamedNamespace + 3;
  manifest.forks = {{3, 1, 100}, {4, 3, 200}};
  manifest.parent_counts.Add(4, {10, 1000, 3, absl::int128(3) << 70});
  manifest.levels[0][1][0].of_clones = true;
  return manifest;
}

// The header again over fields that were changed on purpose.
std::string Sealed(std::string bytes) {
  EncodeFixed64(bytes.data() + 16, bytes.size() - 24);
  EncodeFixed32(bytes.data() + 12,
                Checksum(std::string_view(bytes).substr(16), DecodeFixed32(bytes.data() + 8)));
  return bytes;
}

// What every version writes of a small store.
constexpr std::string_view kFieldsOfAllVersions =
    "\x08\x07\x06\x05\x04\x03\x02\x01"  // store id
    // Next file number, flushed sequence, next generation, clean end.
    "\xac\x02\x05\x02\x01"
    "\x01\x00\x01"          // one namespace
    "\x01\x02\x80\x01\x05"  // one log end
    "\x01\x01\x01"          // one level with one run of one segment
    "\x01\x80\x20\xac\x02\x02\x01\x0a\xb6\x02\x01"
    "\x05\0\0\0\1a\x05\0\0\0\1b\x01\x01\x04\x80\x01"  // keys, one entry of key counts
    "\x01\x01\x01\x01\x01\x01\x00"sv;                 // one counted group

Manifest SmallManifest() {
  Manifest manifest;
  manifest.store_id = 0x0102030405060708;
  manifest.next_file_number = 300;
  manifest.flushed_sequence = 5;
  manifest.next_generation = 2;
  manifest.namespaces = {{0, 1}};
  manifest.log_ends = {{2, 128, 5}};
  manifest.clean_end = true;
  SegmentInfo segment = SegmentOf(1, "\0\0\0\1a"s, "\0\0\0\1b"s);
  segment.largest_is_exclusive = true;
  segment.live.Add(1, {2, 64});
  manifest.levels = {{{segment}}};
  GenerationKeyCounts change;
  change.Add(1, {-1, 0});
  manifest.counted_groups = {{{1}, change}};
  return manifest;
}

TEST(ManifestTest, TheBytesNeverChange) {
  Manifest manifest = SmallManifest();
  const std::string plain = EncodeManifest(manifest);
  EXPECT_EQ(plain.substr(24), std::string(kFieldsOfAllVersions) + "\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(plain.substr(0, 12), "VARVEMAN\2\0\0\0"s);
  manifest.clock_mark = 300;
  manifest.next_named_namespace += 5;
  manifest.descriptions = {
      {.id = kFirstNamedNamespace, .name = "users", .options = {.max_bytes = 300}}};
  EXPECT_EQ(EncodeManifest(manifest).substr(24),
            std::string(kFieldsOfAllVersions) +
                "\xac\x02\x05\x01\x80\x80\x04\x05users\xac\x02\x00\x00\x00\x00\x00\x00"s);
  manifest = SmallManifest();
  manifest.forks = {{7, 1, 300}};
  manifest.parent_counts.Add(7, {2, 64});
  EXPECT_EQ(
      EncodeManifest(manifest).substr(24),
      std::string(kFieldsOfAllVersions) + "\x00\x00\x00\x01\x07\x01\xac\x02\x01\x07\x04\x80\x01"s);
}

// Version 4: the key counts say what expires.
TEST(ManifestTest, TheBytesOfExpiriesNeverChange) {
  Manifest manifest = SmallManifest();
  manifest.levels[0][0][0].live = GenerationKeyCounts();
  manifest.levels[0][0][0].live.Add(1, {2, 64, 1, 300});
  manifest.counted_groups[0].change = GenerationKeyCounts();
  manifest.counted_groups[0].change.Add(1, {-1, 0, -1, -2});
  const std::string bytes = EncodeManifest(manifest);
  EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\4\0\0\0"s);
  const std::string fields(kFieldsOfAllVersions.substr(0, kFieldsOfAllVersions.size() - 12));
  EXPECT_EQ(bytes.substr(24),
            fields +
                "\x01\x01\x04\x80\x01\x02\x00\xac\x02\x00"s  // key counts, no value files
                "\x01\x01\x01\x01\x01\x01\x00"s              // one counted group
                "\x01\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"s +
                "\x00\x00\x00\x00\x00"s);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_TRUE(decoded.counts_expiry);
  EXPECT_EQ(decoded.levels[0][0][0].live.Of(1), (KeyCounts{2, 64, 1, 300}));
  EXPECT_EQ(decoded.counted_groups[0].change.Of(1), (KeyCounts{-1, 0, -1, -2}));
  EXPECT_EQ(EncodeManifest(decoded), bytes);
}

// Version 5: a store with history.
TEST(ManifestTest, TheBytesOfHistoryNeverChange) {
  Manifest manifest = SmallManifest();
  manifest.levels[0][0][0].live = GenerationKeyCounts();
  manifest.counted_groups.clear();
  manifest.has_history = true;
  manifest.history_id = 0x1112131415161718;
  manifest.times = {300, 88};
  const std::string bytes = EncodeManifest(manifest);
  EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\5\0\0\0"s);
  const std::string sections =
      "\x02\x01\x08\x18\x17\x16\x15\x14\x13\x12\x11"
      "\x02\x03\xac\x02\x58"s;
  EXPECT_EQ(bytes.substr(bytes.size() - sections.size()), sections);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_TRUE(decoded.has_history && decoded.counts_expiry);
  EXPECT_EQ(decoded.history_id, manifest.history_id);
  EXPECT_EQ(decoded.times, manifest.times);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
  manifest.times = {};
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "MANIFEST")->times, TimeFilePlace());
}

// Version 6: a namespace evicts.
TEST(ManifestTest, TheBytesOfEvictionRulesNeverChange) {
  Manifest manifest = SmallManifest();
  manifest.levels[0][0][0].live = GenerationKeyCounts();
  manifest.counted_groups.clear();
  manifest.has_history = true;
  manifest.history_id = 1;
  manifest.descriptions = {{.id = kFirstNamedNamespace,
                            .name = "a",
                            .options = {.max_bytes = 300,
                                        .sync = Durability::kNone,
                                        .eviction = {EvictionOrder::kTtl, true},
                                        .history = HistoryLimits{1000, 0}}}};
  const std::string bytes = EncodeManifest(manifest);
  EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\6\0\0\0"s);
  const std::string description =
      "\x80\x80\x04\x01"
      "a\xac\x02\x00\x00\xc3\x00\xe8\x07\x00\x83"s;
  EXPECT_NE(bytes.find(description), std::string::npos);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_EQ(decoded.descriptions, manifest.descriptions);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
  // Neither version says what the other one says.
  std::string other = bytes;
  other[8] = 5;
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(other), "MANIFEST").status()));
  manifest.descriptions[0].options.eviction = {};
  other = EncodeManifest(manifest);
  EXPECT_EQ(other[8], 5);
  other[8] = 6;
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(other), "MANIFEST").status()));
}

// Version 7: segments may share keys, and namespaces may evict or not.
TEST(ManifestTest, AStoreThatSharesKeysHasAVersionOfItsOwn) {
  Manifest manifest = SmallManifest();
  manifest.has_history = true;
  manifest.history_id = 1;
  std::string whole = EncodeManifest(manifest);
  manifest.shares_keys = true;
  for (const bool evicts : {false, true}) {
    if (evicts) {
      manifest.descriptions = {{.id = kFirstNamedNamespace,
                                .name = "a",
                                .options = {.eviction = {EvictionOrder::kLru, false}}}};
    }
    const std::string bytes = EncodeManifest(manifest);
    EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\7\0\0\0"s);
    if (!evicts) EXPECT_EQ(bytes.substr(16), whole.substr(16)) << "nothing else differs";
    const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
    EXPECT_TRUE(decoded.shares_keys && decoded.has_history);
    EXPECT_EQ(EncodeManifest(decoded), bytes);
  }
  EXPECT_FALSE(DecodeManifest(whole, "MANIFEST")->shares_keys);
}

// What a newer program has written is whole: a repair that took it for damaged would rebuild it.
TEST(ManifestTest, ANewerVersionIsNotDamage) {
  std::string bytes = EncodeManifest(Example());
  bytes[8] = kManifestFormatVersion + 1;
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(bytes, "MANIFEST").status())) << "a flipped bit";
  const absl::Status newer = DecodeManifest(Sealed(bytes), "MANIFEST").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(newer)) << newer;
  EXPECT_NE(newer.message().find(fmt::format("format version {}, this program reads 1 to {}",
                                             kManifestFormatVersion + 1, kManifestFormatVersion)),
            absl::string_view::npos)
      << newer;
  bytes[8] = 0;
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(bytes), "MANIFEST").status()));
  bytes.resize(30);
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(bytes, "MANIFEST").status()));
}

TEST(ManifestTest, DeclaredGroupsHaveAVersionOfTheirOwn) {
  Manifest manifest = SmallManifest();
  manifest.levels[0][0][0].live = GenerationKeyCounts();
  manifest.counted_groups.clear();
  manifest.has_history = true;
  manifest.history_id = 1;
  manifest.descriptions = {{.id = kFirstNamedNamespace,
                            .name = "a",
                            .options = {.max_keys = 1,
                                        .eviction = {EvictionOrder::kTtl, true},
                                        .grouping = KeyGrouping::By(':')}}};
  const std::string bytes = EncodeManifest(manifest);
  EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\7\0\0\0"s);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_EQ(decoded.descriptions, manifest.descriptions);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
  std::string other = bytes;
  other[8] = 6;
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(other), "MANIFEST").status()));
}

TEST(ManifestTest, TheBytesOfIngestedSegmentsNeverChange) {
  Manifest manifest = SmallManifest();
  manifest.has_history = true;
  manifest.history_id = 1;
  SegmentInfo& segment = manifest.levels[0][0][0];
  segment.ingested_at = segment.largest_sequence;
  const std::string bytes = EncodeManifest(manifest);
  std::string section = "\x0a\x03\x01"s;
  PutVarint64(&section, segment.number);
  PutVarint64(&section, segment.ingested_at);
  section[1] = static_cast<char>(section.size() - 2);
  EXPECT_EQ(bytes.substr(bytes.size() - section.size()), section);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_EQ(decoded.levels[0][0][0].ingested_at, segment.ingested_at);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
  std::string wrong = bytes;
  ++wrong.back();  // another version than that of its records
  EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(wrong), "MANIFEST").status()));
}

TEST(ManifestTest, TheBytesOfCompressedSegmentsNeverChange) {
  Manifest manifest = SmallManifest();
  manifest.has_history = true;
  manifest.history_id = 1;
  const std::string before = EncodeManifest(manifest);
  SegmentInfo& segment = manifest.levels[0][0][0];
  segment.number = 7;
  segment.compressed = {{.generation = 1,
                         .compression = {CompressionMethod::kZstd, 3},
                         .plain_bytes = 300,
                         .stored_bytes = 100},
                        {.generation = 2,
                         .compression = {CompressionMethod::kLz4, 0},
                         .plain_bytes = 5,
                         .stored_bytes = 5}};
  const std::string bytes = EncodeManifest(manifest);
  const std::string section =
      "\x0c\x0e\x01\x07\x02"
      "\x01\x02\x03\xac\x02\x64"
      "\x02\x01\x00\x05\x05"s;
  EXPECT_EQ(bytes.substr(bytes.size() - section.size()), section);
  const Manifest decoded = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_EQ(decoded.levels[0][0][0].compressed, segment.compressed);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
  EXPECT_EQ(before.find(section), std::string::npos);
  // A method and a level that there are not, generations out of order, and no such segment.
  for (const auto& [from_end, byte] :
       {std::pair(10, '\x03'), std::pair(9, '\x14'), std::pair(5, '\x01'), std::pair(13, '\x63')}) {
    std::string wrong = bytes;
    wrong[wrong.size() - static_cast<size_t>(from_end)] = byte;
    EXPECT_TRUE(absl::IsDataLoss(DecodeManifest(Sealed(wrong), "MANIFEST").status())) << from_end;
  }
}

TEST(ManifestTest, AnUnknownSectionIsRefused) {
  Manifest manifest = SmallManifest();
  manifest.has_history = true;
  manifest.history_id = 1;
  std::string bytes = EncodeManifest(manifest);
  bytes[bytes.size() - 10] = 9;  // the tag
  const absl::Status status = DecodeManifest(Sealed(bytes), "MANIFEST").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("section 9"), absl::string_view::npos) << status;
}

// A store whose merges did not count what expires is counted anew; one without expiries is not.
TEST(ManifestTest, CountsWithoutExpiryAreForgottenWhereKeysMayExpire) {
  Manifest plain = DecodeManifest(EncodeManifest(SmallManifest()), "MANIFEST").value();
  EXPECT_FALSE(plain.counts_expiry);
  ForgetCountsWithoutExpiry(&plain);
  EXPECT_TRUE(plain.counts_expiry);
  EXPECT_TRUE(plain.levels[0][0][0].expiry_is_counted);
  EXPECT_EQ(plain.counted_groups.size(), 1u);

  Manifest old = SmallManifest();
  old.counts_expiry = false;
  old.levels[0][0][0].largest = FirstTreeKey(kExpiryGeneration) + "x";
  const std::string bytes = EncodeManifest(old);
  EXPECT_EQ(bytes.substr(0, 12), "VARVEMAN\2\0\0\0"s);
  old = DecodeManifest(bytes, "MANIFEST").value();
  EXPECT_EQ(EncodeManifest(old), bytes);
  ForgetCountsWithoutExpiry(&old);
  EXPECT_FALSE(old.levels[0][0][0].expiry_is_counted);
  EXPECT_TRUE(old.counted_groups.empty());
  const std::string next = EncodeManifest(old);
  EXPECT_EQ(next.substr(0, 12), "VARVEMAN\4\0\0\0"s);
  EXPECT_FALSE(DecodeManifest(next, "MANIFEST")->levels[0][0][0].expiry_is_counted);
}

TEST(ManifestTest, VersionOneIsRead) {
  const std::string bytes =
      "VARVEMAN\1\0\0\0u2e\xb4;\0\0\0\0\0\0\0"s + std::string(kFieldsOfAllVersions);
  const absl::StatusOr<Manifest> manifest = DecodeManifest(bytes, "MANIFEST");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(EncodeManifest(*manifest), EncodeManifest(SmallManifest()));
}

TEST(ManifestTest, NamespacesComeInOrder) {
  Manifest manifest = Example();
  std::swap(manifest.namespaces[0], manifest.namespaces[1]);
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "m").status().code(),
            absl::StatusCode::kDataLoss);
  manifest = Example();
  manifest.descriptions.push_back(manifest.descriptions[0]);
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "m").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(ManifestTest, ForksThatMakeNoSenseAreRefused) {
  Manifest manifest = Example();
  std::swap(manifest.forks[0], manifest.forks[1]);
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "m").status().code(),
            absl::StatusCode::kDataLoss);
  manifest = Example();
  manifest.forks[0].parent = manifest.forks[0].generation;
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "m").status().code(),
            absl::StatusCode::kDataLoss)
      << "it would be its own parent";
}

TEST(ManifestTest, EverythingComesBack) {
  for (const Manifest& manifest : {Manifest{}, Example()}) {
    const std::string bytes = EncodeManifest(manifest);
    const absl::StatusOr<Manifest> decoded = DecodeManifest(bytes, "MANIFEST");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->store_id, manifest.store_id);
    EXPECT_EQ(decoded->next_file_number, manifest.next_file_number);
    EXPECT_EQ(decoded->flushed_sequence, manifest.flushed_sequence);
    EXPECT_EQ(decoded->next_generation, manifest.next_generation);
    EXPECT_EQ(decoded->clean_end, manifest.clean_end);
    EXPECT_EQ(decoded->clock_mark, manifest.clock_mark);
    ASSERT_EQ(decoded->levels.size(), manifest.levels.size());
    EXPECT_EQ(EncodeManifest(*decoded), bytes);
  }
  const Manifest decoded = DecodeManifest(EncodeManifest(Example()), "MANIFEST").value();
  ASSERT_EQ(decoded.levels[2][0].size(), 2u);
  EXPECT_EQ(decoded.levels[2][0][1].number, 9u);
  EXPECT_EQ(decoded.levels[2][0][1].file_size, 4096u * 9);
  EXPECT_EQ(decoded.levels[2][0][1].smallest, "\0\0\0\1n"s);
  EXPECT_EQ(decoded.levels[2][0][1].largest, "\0\0\0\2"s);
  EXPECT_TRUE(decoded.levels[2][0][1].largest_is_exclusive);
  EXPECT_EQ(decoded.namespaces[1].id, 7u);
  EXPECT_EQ(decoded.namespaces[1].generation, 4u);
  EXPECT_EQ(decoded.descriptions, Example().descriptions);
  EXPECT_EQ(decoded.next_named_namespace, kFirstNamedNamespace + 3);
  EXPECT_EQ(decoded.forks, Example().forks);
  EXPECT_EQ(decoded.parent_counts, Example().parent_counts);
  EXPECT_TRUE(decoded.levels[0][1][0].of_clones);
  EXPECT_FALSE(decoded.levels[0][0][0].of_clones);
  EXPECT_EQ(decoded.levels[0][0][0].live, Example().levels[0][0][0].live);
  ASSERT_EQ(decoded.counted_groups.size(), 1u);
  EXPECT_EQ(decoded.counted_groups[0].segments, (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(decoded.counted_groups[0].change, Example().counted_groups[0].change);
  EXPECT_EQ(decoded.log_ends[0].offset, 65536u);
}

TEST(ManifestTest, EveryFlippedBitIsFound) {
  const std::string bytes = EncodeManifest(Example());
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    const absl::StatusOr<Manifest> decoded = DecodeManifest(damaged, "dir/MANIFEST");
    ASSERT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << "bit " << i;
    ASSERT_NE(decoded.status().message().find("dir/MANIFEST"), std::string::npos)
        << decoded.status();
  }
}

TEST(ManifestTest, EveryTruncationAndEveryExtraByteIsFound) {
  const std::string bytes = EncodeManifest(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(DecodeManifest(std::string_view(bytes).substr(0, size), "m").status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(DecodeManifest(bytes + '\0', "m").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeManifest(Sealed(bytes + '\0'), "m").status().code(), absl::StatusCode::kDataLoss)
      << "nothing may follow the last field";
}

// With the checksum made right, the decoder itself has to hold.
TEST(ManifestTest, FieldsThatMakeNoSenseAreRefusedOrReadWithinTheirBounds) {
  const std::string bytes = EncodeManifest(Example());
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      damaged[24 + random() % (damaged.size() - 24)] = static_cast<char>(random());
    }
    if (random() % 4 == 0) damaged.resize(24 + random() % (damaged.size() - 24));
    const absl::StatusOr<Manifest> decoded = DecodeManifest(Sealed(damaged), "m");
    if (decoded.ok()) {
      EXPECT_EQ(EncodeManifest(*decoded), Sealed(damaged)) << "one manifest, one encoding";
    }
  }
}

TEST(ManifestTest, ADeclaredCountAsksForNoMoreThanThereIs) {
  std::string bytes = EncodeManifest(Manifest{});
  // The counts of namespaces, log ends, levels and counted groups, and what follows.
  bytes.resize(bytes.size() - 8);
  PutVarint64(&bytes, uint64_t{1} << 60);  // namespaces
  EXPECT_EQ(DecodeManifest(Sealed(bytes), "m").status().code(), absl::StatusCode::kDataLoss);
}

TEST(ManifestTest, SegmentsOfARunThatOverlapAreRefused) {
  Manifest manifest = Example();
  manifest.levels[2][0][0].largest = "\0\0\0\1n"s;  // where the next one begins
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "m").status().code(),
            absl::StatusCode::kDataLoss);
  manifest.levels[2][0][0].largest_is_exclusive = true;
  EXPECT_TRUE(DecodeManifest(EncodeManifest(manifest), "m").ok());
}

TEST(ManifestTest, TheFileIsReplacedWhole) {
  const testing::TempDir directory;
  EXPECT_EQ(ReadManifest(PosixFileSystem(), directory.path()).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteManifest(PosixFileSystem(), directory.path(), Example()).ok());
  Manifest next = Example();
  next.levels.clear();
  next.next_file_number = 43;
  ASSERT_TRUE(WriteManifest(PosixFileSystem(), directory.path(), next).ok());
  const absl::StatusOr<Manifest> read = ReadManifest(PosixFileSystem(), directory.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->next_file_number, 43u);
  EXPECT_EQ(PosixFileSystem()->List(directory.path()).value(),
            (std::vector<std::string>{"MANIFEST", "MANIFEST.copy"}));
  EXPECT_EQ(ReadManifestCopy(PosixFileSystem(), directory.path())->next_file_number, 43u);
  // What a crash in the middle of the next one leaves beside it changes nothing.
  std::ofstream(directory.File("MANIFEST.tmp")) << "VARVEM";
  EXPECT_EQ(ReadManifest(PosixFileSystem(), directory.path())->next_file_number, 43u);
  ASSERT_TRUE(WriteManifest(PosixFileSystem(), directory.path(), Example()).ok());
  EXPECT_EQ(ReadManifest(PosixFileSystem(), directory.path())->next_file_number, 42u);
}

}  // namespace
}  // namespace varve
