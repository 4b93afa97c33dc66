#include "db/write_buffer/write_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "type/tree_key.h"
#include "util/base/hash.h"

namespace varve {
namespace {

std::string Key(const std::string& user_key, NamespaceGeneration generation = 1) {
  return std::string(TreeKey(generation, user_key).view());
}

void Add(WriteBuffer* buffer, const std::string& key, std::string_view value,
         SequenceNumber sequence, RecordKind kind = RecordKind::kValue) {
  buffer->Add({.key = key, .value = value, .sequence = sequence, .kind = kind}, HashKey(key),
              /*readers_wait=*/false);
}

std::string Lookup(const WriteBuffer& buffer, const std::string& key, SequenceNumber at) {
  WriteBuffer::Found found;
  if (!buffer.Get(key, HashKey(key), at, &found)) return "(none)";
  return found.record.kind == RecordKind::kTombstone ? "(deleted)"
                                                     : std::string(found.record.value);
}

TEST(WriteBufferTest, EachSequenceSeesItsOwnVersion) {
  WriteBuffer buffer(1 << 20, 1);
  Add(&buffer, Key("a"), "one", 1);
  Add(&buffer, Key("b"), "other", 2);
  Add(&buffer, Key("a"), "", 3, RecordKind::kTombstone);
  Add(&buffer, Key("a"), "two", 4);
  EXPECT_EQ(Lookup(buffer, Key("a"), 0), "(none)");
  EXPECT_EQ(Lookup(buffer, Key("a"), 1), "one");
  EXPECT_EQ(Lookup(buffer, Key("a"), 2), "one");
  EXPECT_EQ(Lookup(buffer, Key("a"), 3), "(deleted)");
  EXPECT_EQ(Lookup(buffer, Key("a"), kMaxSequence), "two");
  EXPECT_EQ(Lookup(buffer, Key("a", 2), kMaxSequence), "(none)");
  EXPECT_EQ(buffer.NewestSequence(Key("a"), HashKey(Key("a"))), 4u);
  EXPECT_EQ(buffer.NewestSequence(Key("c"), HashKey(Key("c"))), kNoSequence);
}

// Inserts one record without appending it.
WriteBuffer::Batch Insert(WriteBuffer* buffer, const std::string& key, std::string_view value,
                          SequenceNumber sequence) {
  const RecordView record{.key = key, .value = value, .sequence = sequence};
  buffer->Reserve(WriteBuffer::SizeOf(record), 0);
  char* memory = buffer->Take(WriteBuffer::SizeOf(record));
  WriteBuffer::Batch batch;
  buffer->Insert(record, HashKey(key), /*readers_wait=*/false, &memory, &batch);
  return batch;
}

TEST(WriteBufferTest, VersionsOfAKeyAscendInWhateverOrderTheyAreInserted) {
  const std::string key = Key("k"), other = Key("other");
  std::vector<SequenceNumber> order = {1, 2, 3, 4};
  do {
    WriteBuffer buffer(64 << 10, 1);
    Add(&buffer, other, "x", 1);  // some orders share a bucket with it, and some do not
    std::map<SequenceNumber, WriteBuffer::Batch> batches;
    for (const SequenceNumber i : order)
      batches[i] = Insert(&buffer, key, std::to_string(i), i + 1);
    for (const auto& [i, batch] : batches) buffer.Append(batch);
    EXPECT_EQ(Lookup(buffer, key, 1), "(none)");
    for (const SequenceNumber i : order) EXPECT_EQ(Lookup(buffer, key, i + 1), std::to_string(i));
    EXPECT_EQ(buffer.NewestSequence(key, HashKey(key)), 5u);
    WriteBuffer::Position position;
    buffer.Walk(&position, kMaxSequence, [&](const RecordView& record, const RecordView* before) {
      if (record.key != key) return;
      if (record.sequence == 2) {
        EXPECT_EQ(before, nullptr);
      } else {
        ASSERT_NE(before, nullptr);
        EXPECT_EQ(before->sequence, record.sequence - 1);
      }
    });
    buffer.Seal(5);
    const auto newest = buffer.NewSortedIterator(/*newest_only=*/true);
    newest->SeekToFirst();
    ASSERT_TRUE(newest->Valid());
    EXPECT_EQ(newest->record().sequence, 5u);
    newest->Next();
    ASSERT_TRUE(newest->Valid());
    EXPECT_EQ(newest->record().key, other);
    newest->Next();
    EXPECT_FALSE(newest->Valid()) << "older versions are said to be overwritten";
  } while (std::next_permutation(order.begin(), order.end()));
}

// Threads take turns at sequences and memory, insert side by side into few buckets, and append in
// order, as the commit pipeline does; readers meanwhile find what is appended.
TEST(WriteBufferTest, ThreadsInsertSideBySide) {
  constexpr SequenceNumber kRecords = 12'000;
  constexpr int kThreads = 3, kKeys = 40;
  WriteBuffer buffer(4096, 1);  // 64 buckets
  std::vector<std::vector<SequenceNumber>> versions(kKeys);
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(Key("key" + std::to_string(i)));
  const auto key_of = [](SequenceNumber sequence) { return sequence * 2654435761u % kKeys; };
  for (SequenceNumber i = 1; i <= kRecords; ++i) versions[key_of(i)].push_back(i);
  std::vector<char*> memory(kRecords + 1);
  for (SequenceNumber i = 1; i <= kRecords; ++i) {
    const size_t size = WriteBuffer::SizeOf({.key = keys[key_of(i)], .value = "12345678"});
    buffer.Reserve(size, 0);
    memory[i] = buffer.Take(size);
  }
  std::atomic<SequenceNumber> next{1}, appended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (SequenceNumber i = next++; i <= kRecords; i = next++) {
        WriteBuffer::Batch batch;
        const std::string& key = keys[key_of(i)];
        char* place = memory[i];
        buffer.Insert({.key = key, .value = std::to_string(10'000'000 + i), .sequence = i},
                      HashKey(key), /*readers_wait=*/false, &place, &batch);
        while (appended.load() != i - 1) std::this_thread::yield();
        buffer.Append(batch);
        appended.store(i);
        WriteBuffer::Found found;
        ASSERT_TRUE(buffer.Get(key, HashKey(key), i, &found));
        ASSERT_EQ(found.record.sequence, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(buffer.entries(), kRecords);
  for (int k = 0; k < kKeys; ++k) {
    for (size_t i = 0; i < versions[k].size(); ++i) {
      const SequenceNumber until = i + 1 < versions[k].size() ? versions[k][i + 1] - 1 : kRecords;
      WriteBuffer::Found found;
      ASSERT_TRUE(buffer.Get(keys[k], HashKey(keys[k]), until, &found));
      ASSERT_EQ(found.record.sequence, versions[k][i]);
    }
  }
}

TEST(WriteBufferTest, PositionsAreSpreadOverAllRecords) {
  for (const uint64_t records : {1u, 64u, 65u, 129u, 3000u, 50'000u}) {
    WriteBuffer buffer(16 << 20, 1, records);
    for (SequenceNumber i = 1; i <= records; ++i) Add(&buffer, Key(std::to_string(i)), "v", i);
    const std::vector<WriteBuffer::Position> positions = buffer.SpreadPositions(1, records);
    EXPECT_LE(positions.size(), WriteBuffer::kSpreadMarks + 1);
    if (records == 1) {
      EXPECT_TRUE(positions.empty()) << "nothing follows the only record";
      continue;
    }
    ASSERT_FALSE(positions.empty());
    EXPECT_EQ(positions.front().sequence(), 1u);
    EXPECT_LT(records - positions.back().sequence(), 2 * WriteBuffer::kEntriesPerMark);
    EXPECT_GE(records - positions.back().sequence(), records > 64 ? 64 : records - 1);
    const uint64_t widest = std::max<uint64_t>(128, 2 * records / WriteBuffer::kSpreadMarks + 64);
    for (size_t i = 1; i < positions.size(); ++i) {
      EXPECT_LT(positions[i - 1].sequence(), positions[i].sequence());
      EXPECT_LE(positions[i].sequence() - positions[i - 1].sequence(), widest);
    }
    WriteBuffer::Position last = positions.back();
    SequenceNumber next = last.sequence();
    buffer.Walk(&last, records, [&](const RecordView& record, const RecordView*) {
      EXPECT_EQ(record.sequence, ++next);
    });
    EXPECT_EQ(next, records);
    EXPECT_EQ(buffer.SpreadPositions(records, records).size(), 0u);
  }
}

TEST(WriteBufferTest, PositionsAreSpreadWhileTheWriterAdds) {
  constexpr SequenceNumber kRecords = 50'000;
  WriteBuffer buffer(16 << 20, 1, kRecords);
  std::atomic<SequenceNumber> visible{0};
  std::thread writer([&] {
    for (SequenceNumber i = 1; i <= kRecords; ++i) {
      Add(&buffer, Key(std::to_string(i)), "v", i);
      visible.store(i, std::memory_order_release);
    }
  });
  for (SequenceNumber end = 0; end < kRecords;) {
    end = visible.load(std::memory_order_acquire);
    SequenceNumber before = 0;
    for (WriteBuffer::Position position : buffer.SpreadPositions(1, end)) {
      EXPECT_LT(before, position.sequence());
      EXPECT_LT(position.sequence(), end);
      before = position.sequence();
      SequenceNumber next = before;
      buffer.Walk(
          &position, std::min(end, before + 32),
          [&](const RecordView& record, const RecordView*) { EXPECT_EQ(record.sequence, ++next); });
      EXPECT_EQ(next, std::min(end, before + 32));
    }
  }
  writer.join();
}

TEST(WriteBufferTest, ExpiryAndMetadataAreKept) {
  WriteBuffer buffer(1 << 20, 1);
  const std::string key = Key("a");
  buffer.Add({.key = key,
              .value = "v",
              .metadata = "meta",
              .sequence = 1,
              .expiry_ms = 12345,
              .flags = kHasExpiry | kHasMetadata | kCompressed},
             HashKey(key), /*readers_wait=*/true);
  WriteBuffer::Found found;
  ASSERT_TRUE(buffer.Get(key, HashKey(key), 1, &found));
  EXPECT_TRUE(found.readers_wait);
  EXPECT_EQ(found.record.value, "v");
  EXPECT_EQ(found.record.metadata, "meta");
  EXPECT_EQ(found.record.expiry_ms, 12345u);
  EXPECT_EQ(found.record.flags, kHasExpiry | kHasMetadata | kCompressed);
}

// The entries of the expiry index come behind all records of their batch, with the sequences of
// some of them.
TEST(WriteBufferTest, EachRecordIsOnceInTheOrderAlsoWhereSequencesGoBack) {
  WriteBuffer buffer(1 << 20, 1);
  const auto in_order = [&] {
    std::string keys;
    const auto iterator = buffer.NewIterator();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys.append(UserKeyOf(iterator->record().key)).append(" ");
    }
    return keys;
  };
  Add(&buffer, Key("a"), "", 1);
  Add(&buffer, Key("b"), "", 2);
  Add(&buffer, Key("c", 2), "", 1);
  Add(&buffer, Key("d", 2), "", 2);
  EXPECT_EQ(in_order(), "a b c d ");
  EXPECT_EQ(in_order(), "a b c d ");
  Add(&buffer, Key("e"), "", 3);
  EXPECT_EQ(in_order(), "a b e c d ");
}

TEST(WriteBufferTest, BothIndexesAgreeWithAMap) {
  WriteBuffer buffer(64 << 10, 1);  // few buckets: long chains
  std::map<std::string, std::map<SequenceNumber, std::string>> model;
  std::mt19937_64 random(1);
  for (SequenceNumber sequence = 1; sequence <= 5000; ++sequence) {
    const std::string key = Key(std::string(random() % 12, 'k') + std::to_string(random() % 700));
    const std::string value = std::to_string(sequence);
    Add(&buffer, key, value, sequence);
    model[key][sequence] = value;
    if (sequence % 1000 != 0) continue;
    // In order: keys ascending, versions newest first; the order is brought up to date in several
    // steps.
    const auto iterator = buffer.NewIterator();
    const auto sorted = buffer.NewSortedIterator(/*newest_only=*/false);
    const auto newest = buffer.NewSortedIterator(/*newest_only=*/true);
    const auto keys = buffer.NewIterator();
    for (InternalIterator* each : {iterator.get(), sorted.get(), newest.get(), keys.get()})
      each->SeekToFirst();
    for (const auto& [model_key, versions] : model) {
      ASSERT_TRUE(newest->Valid());
      ASSERT_EQ(newest->record().key, model_key);
      ASSERT_EQ(newest->record().sequence, versions.rbegin()->first);
      newest->Next();
      ASSERT_TRUE(keys->Valid());
      ASSERT_EQ(keys->record().key, model_key);
      ASSERT_EQ(keys->record().sequence, versions.rbegin()->first);
      ASSERT_EQ(keys->NextKey() == nullptr, model_key == model.rbegin()->first);
      for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
        for (InternalIterator* either : {iterator.get(), sorted.get()}) {
          ASSERT_TRUE(either->Valid());
          ASSERT_EQ(either->record().key, model_key);
          ASSERT_EQ(either->record().sequence, version->first);
          either->Next();
        }
      }
      const SequenceNumber at = 1 + random() % sequence;
      const auto newer = versions.upper_bound(at);
      ASSERT_EQ(Lookup(buffer, model_key, at),
                newer == versions.begin() ? "(none)" : std::prev(newer)->second);
    }
    ASSERT_FALSE(iterator->Valid());
    ASSERT_FALSE(sorted->Valid());
    ASSERT_FALSE(newest->Valid());
  }
}

// The first keys decide which bytes most comparisons look at.
TEST(WriteBufferTest, LaterKeysMayDifferAnywhereFromTheFirstOnes) {
  for (const int first_keys : {1, 20, 2000}) {
    WriteBuffer buffer(1 << 20, 1);
    std::set<std::string> keys;
    SequenceNumber sequence = 0;
    const auto add = [&](const std::string& key) {
      if (keys.insert(key).second) Add(&buffer, key, "value", ++sequence);
    };
    const std::string base = "user:00000000";
    for (int i = 0; i < first_keys; ++i) add(Key(base + std::to_string(100'000 + i * 7919 % 9973)));
    ASSERT_NE(buffer.NewIterator(), nullptr);
    for (size_t size = 0; size <= base.size(); ++size) {
      for (const char* behind : {"", "!", "~", "\xff", "1", "100000000000"})
        add(Key(base.substr(0, size) + behind));
    }
    for (const NamespaceGeneration generation : {0u, 2u, 0x01000000u})
      add(Key(base + "100001", generation));
    add(Key(base) + std::string("\0", 1));

    const auto iterator = buffer.NewIterator();
    iterator->SeekToFirst();
    for (const std::string& key : keys) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->record().key, key);
      iterator->Next();
    }
    ASSERT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    for (auto key = keys.rbegin(); key != keys.rend(); ++key, iterator->Prev())
      ASSERT_EQ(iterator->record().key, *key);
    for (const std::string& key : keys) {
      for (const std::string& target : {key, key + '\0', key + '\xff'}) {
        iterator->Seek(target, kMaxSequence);
        const auto expected = keys.lower_bound(target);
        ASSERT_EQ(iterator->Valid(), expected != keys.end());
        for (auto at = expected; at != keys.end() && std::distance(expected, at) < 7; ++at) {
          ASSERT_EQ(iterator->record().key, *at);
          iterator->Next();
        }
      }
    }
  }
}

TEST(WriteBufferTest, SeeksLandAtTheVersionAskedFor) {
  WriteBuffer buffer(1 << 20, 1);
  Add(&buffer, Key("b"), "1", 1);
  Add(&buffer, Key("b"), "5", 5);
  Add(&buffer, Key("d"), "6", 6);
  for (const auto& iterator :
       {buffer.NewIterator(), buffer.NewSortedIterator(/*newest_only=*/false)}) {
    iterator->Seek(Key("b"), kMaxSequence);
    EXPECT_EQ(iterator->record().sequence, 5u);
    iterator->Seek(Key("b"), 4);
    EXPECT_EQ(iterator->record().sequence, 1u);
    iterator->Seek(Key("b"), 0);
    EXPECT_EQ(iterator->record().sequence, 6u);
    iterator->Prev();
    EXPECT_EQ(iterator->record().sequence, 1u);
    iterator->SeekToFirst();
    iterator->Prev();
    EXPECT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    EXPECT_EQ(iterator->record().sequence, 6u);
    iterator->Seek(Key("e"), kMaxSequence);
    EXPECT_FALSE(iterator->Valid());
  }
}

TEST(WriteBufferTest, AKeyWrittenOftenDoesNotSlowItsNeighbours) {
  WriteBuffer buffer(64 << 10, 1);  // 512 buckets
  for (int i = 0; i < 2000; ++i) Add(&buffer, Key("key" + std::to_string(i)), "v", 1 + i);
  for (int i = 0; i < 200000; ++i) Add(&buffer, Key("key7"), "v", 3000 + i);
  // Were versions chained in the buckets, each of these would walk 200,000 of them in one bucket of
  // 512.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 2000; ++i)
      ASSERT_EQ(Lookup(buffer, Key("key" + std::to_string(i)), kMaxSequence), "v");
  }
}

TEST(WriteBufferTest, ReadersFindEverythingThatIsVisibleWhileAWriterAdds) {
  WriteBuffer buffer(256 << 10, 1);
  std::atomic<SequenceNumber> visible{0};
  constexpr SequenceNumber kWrites = 30000;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937_64 random(reader);
      for (SequenceNumber at = 0; at < kWrites; at = visible.load()) {
        at = visible.load();
        if (at == 0) continue;
        // Key k was last written at or before `at` with sequence s, where s % 997 == k.
        const SequenceNumber wanted = at - std::min<SequenceNumber>(random() % 500, at - 1);
        WriteBuffer::Found found;
        const std::string key = Key(std::to_string(wanted % 997));
        ASSERT_TRUE(buffer.Get(key, HashKey(key), at, &found));
        ASSERT_EQ(found.record.sequence, wanted);
        if (random() % 500 == 0) {
          const auto iterator = buffer.NewIterator();
          iterator->Seek(key, at);
          ASSERT_EQ(iterator->record().sequence, wanted);
        }
      }
    });
  }
  for (SequenceNumber sequence = 1; sequence <= kWrites; ++sequence) {
    Add(&buffer, Key(std::to_string(sequence % 997)), "value", sequence);
    visible.store(sequence);
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace varve
