#include "db/iterators/merging_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "db/iterators/parent_iterator.h"
#include "db/write_buffer/write_buffer.h"
#include "type/tree_key.h"
#include "unit-tests/testing/vector_iterator.h"
#include "util/base/hash.h"

namespace varve {
namespace {

using testing::CopyOf;
using testing::TestRecord;
using testing::TreeOrder;
using testing::VectorIterator;

std::unique_ptr<InternalIterator> Merged(const std::vector<std::vector<TestRecord>>& sources) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  for (const std::vector<TestRecord>& source : sources)
    children.push_back(std::make_unique<VectorIterator>(source));
  return NewMergingIterator(std::move(children));
}

TEST(MergingIteratorTest, NoChildrenAreAnEmptySequence) {
  const std::unique_ptr<InternalIterator> iterator = NewMergingIterator({});
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("a", kMaxSequence);
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST(MergingIteratorTest, VersionsOfAKeyComeNewestFirst) {
  const std::unique_ptr<InternalIterator> iterator =
      Merged({{{"b", 9, "new"}}, {{"a", 2, ""}, {"b", 3, "old"}}, {}});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(CopyOf(iterator->record()), (TestRecord{"a", 2, ""}));
  iterator->Next();
  EXPECT_EQ(CopyOf(iterator->record()), (TestRecord{"b", 9, "new"}));
  iterator->Next();
  EXPECT_EQ(CopyOf(iterator->record()), (TestRecord{"b", 3, "old"}));
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("b", 8);
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(CopyOf(iterator->record()), (TestRecord{"b", 3, "old"}))
      << "the version that a read at 8 sees";
}

TEST(MergingIteratorTest, OfEqualRecordsTheEarlierChildComesFirst) {
  const std::unique_ptr<InternalIterator> iterator =
      Merged({{{"a", 1, "first"}}, {{"a", 1, "second"}}, {{"a", 1, "third"}}});
  std::vector<std::string> values;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    values.emplace_back(iterator->record().value);
  EXPECT_EQ(values, (std::vector<std::string>{"first", "second", "third"}));
  iterator->SeekToFirst();
  iterator->Next();
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().value, "first");
  iterator->Next();
  EXPECT_EQ(iterator->record().value, "second");
}

TEST(MergingIteratorTest, AFailedChildEndsTheIteratorWithItsError) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  children.push_back(
      std::make_unique<VectorIterator>(std::vector<TestRecord>{{"b", 1, ""}, {"d", 1, ""}}, 1));
  children.push_back(std::make_unique<VectorIterator>(
      std::vector<TestRecord>{{"a", 1, ""}, {"c", 1, ""}, {"e", 1, ""}}));
  const std::unique_ptr<InternalIterator> iterator = NewMergingIterator(std::move(children));
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().key, "b");
  iterator->Next();
  EXPECT_FALSE(iterator->Valid()) << "keys of the damaged child may be missing from here on";
  EXPECT_EQ(iterator->status().code(), absl::StatusCode::kDataLoss);
  iterator->Seek("e", kMaxSequence);
  EXPECT_TRUE(iterator->Valid()) << "what lies behind the damage stays readable";
  EXPECT_TRUE(iterator->status().ok());
}

// Keys of some rounds differ in one letter, those of others in few of many bytes, near and far from
// their beginning, so that the words by which most comparisons go are often the same.
TEST(MergingIteratorTest, WalksLikeTheSortedWholeInEveryDirection) {
  std::mt19937 random(99);
  const std::string common(20, 'b');
  const auto key_of = [&](int round, unsigned letters) {
    std::string key;
    if (round % 2 == 1) key = common.substr(0, random() % 3 == 0 ? random() % 21 : 18);
    key.push_back(static_cast<char>('a' + random() % letters));
    return round % 4 == 3 ? key + common : key;
  };
  for (int round = 0; round < 150; ++round) {
    std::vector<std::vector<TestRecord>> sources(1 + random() % 9);
    std::vector<TestRecord> all;
    const int records = static_cast<int>(random() % 60);
    for (int i = 0; i < records; ++i) {
      TestRecord record{key_of(round, 12), static_cast<SequenceNumber>(i + 1), ""};
      all.push_back(record);
      sources[random() % sources.size()].push_back(record);
    }
    std::sort(all.begin(), all.end(), TreeOrder);
    const std::unique_ptr<InternalIterator> iterator = Merged(sources);
    size_t expected = all.size();  // all.size(): not valid
    for (int step = 0; step < 300; ++step) {
      const unsigned action = random() % 16;
      if (expected == all.size() || action == 0) {
        if (random() % 3 == 0) {
          iterator->SeekToFirst();
          expected = 0;
        } else if (random() % 2 == 0) {
          iterator->SeekToLast();
          expected = all.empty() ? 0 : all.size() - 1;
        } else {
          const TestRecord wanted{key_of(round, 13), static_cast<SequenceNumber>(random() % 62),
                                  ""};
          iterator->Seek(wanted.key, wanted.sequence);
          expected = static_cast<size_t>(
              std::lower_bound(all.begin(), all.end(), wanted, TreeOrder) - all.begin());
        }
      } else if (action < 4) {
        const std::string key = all[expected].key;
        while (expected < all.size() && all[expected].key == key) ++expected;
        ASSERT_EQ(iterator->NextKey(), iterator->Valid() ? &iterator->record() : nullptr);
      } else if (action < 10) {
        iterator->Next();
        ++expected;
      } else {
        iterator->Prev();
        expected = expected == 0 ? all.size() : expected - 1;
      }
      ASSERT_EQ(iterator->Valid(), expected < all.size()) << round << " " << step;
      if (expected < all.size()) {
        ASSERT_EQ(CopyOf(iterator->record()), all[expected]) << round << " " << step;
      }
      ASSERT_TRUE(iterator->status().ok());
    }
  }
}

// A cursor over a write buffer that grows by two records each time somebody has just sought in it.
class GrowingIterator final : public InternalIterator {
 public:
  explicit GrowingIterator(WriteBuffer* buffer)
      : buffer_(buffer), iterator_(buffer->NewIterator()) {}

  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override { iterator_->SeekToFirst(); }
  void SeekToLast() override { iterator_->SeekToLast(); }
  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    iterator_->Seek(tree_key, sequence);
    for (int i = 0; i < 2; ++i) {  // between what was sought and what was found
      const std::string key = std::string(tree_key) + static_cast<char>('z' - ++grown_);
      buffer_->Add({.key = key, .value = "late", .sequence = SequenceNumber{100} + grown_},
                   HashKey(key),
                   /*readers_wait=*/false);
    }
    buffer_->NewIterator();  // brings the order up to date
  }
  void Next() override { iterator_->Next(); }
  void Prev() override { iterator_->Prev(); }
  const RecordView& record() const override { return iterator_->record(); }
  absl::Status status() const override { return iterator_->status(); }

 private:
  WriteBuffer* const buffer_;
  const std::unique_ptr<InternalIterator> iterator_;
  int grown_ = 0;
};

TEST(MergingIteratorTest, TurningBackStaysBehindWhatAWriteBufferGainsMeanwhile) {
  const auto key = [](const char* user_key) { return std::string(TreeKey(1, user_key).view()); };
  WriteBuffer buffer(1 << 20, 1);
  buffer.Add({.key = key("z"), .value = "v", .sequence = 7}, HashKey(key("z")),
             /*readers_wait=*/false);
  std::vector<std::unique_ptr<InternalIterator>> children;
  children.push_back(std::make_unique<GrowingIterator>(&buffer));
  children.push_back(std::make_unique<VectorIterator>(
      std::vector<TestRecord>{{key("a"), 1, "v"}, {key("k"), 2, "v"}, {key("m"), 3, "v"}}));
  const std::unique_ptr<InternalIterator> iterator = NewMergingIterator(std::move(children));
  iterator->Seek(key("k"), kMaxSequence);
  ASSERT_EQ(iterator->record().key, key("k"));
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().key, key("a"));
}

// Going to the end of a clone's parent is a seek behind it and a step back. A record that another
// thread wrote between the two was taken for the parent's end, and a backward scan began without
// the parent's last keys (1 of 300 runs of ClonesModelTest).
TEST(ParentIteratorTest, TheLastRecordIsFoundThoughAWriteBufferGrowsBehindTheParent) {
  const std::string in_parent(TreeKey(1, "k").view()), behind(TreeKey(9, "z").view());
  WriteBuffer buffer(1 << 20, 1);
  buffer.Add({.key = in_parent, .value = "v", .sequence = 5}, HashKey(in_parent),
             /*readers_wait=*/false);
  buffer.Add({.key = behind, .value = "v", .sequence = 6}, HashKey(behind), /*readers_wait=*/false);
  const std::unique_ptr<InternalIterator> iterator = NewParentIterator(
      std::make_unique<GrowingIterator>(&buffer), {.generation = 7, .parent = 1, .fork_point = 50});
  iterator->SeekToLast();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().key, TreeKey(7, "k").view());
}

}  // namespace
}  // namespace varve
