#include "db/iterators/run_iterator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "type/tree_key.h"
#include "unit-tests/testing/memory_segment.h"

namespace varve {
namespace {

using testing::MemorySegment;
using testing::TestRecord;

std::string Key(const std::string& user_key) { return FirstTreeKey(1) + user_key; }

std::vector<TestRecord> Records(const std::vector<std::string>& user_keys,
                                SequenceNumber sequence) {
  std::vector<TestRecord> records;
  for (const std::string& user_key : user_keys)
    records.push_back({Key(user_key), sequence, "v" + user_key});
  return records;
}

TEST(RunIteratorTest, OpensOnlyTheSegmentsItComesTo) {
  std::vector<std::shared_ptr<Segment>> segments = {
      MemorySegment::Of(1, Records({"a", "b"}, 5)),
      MemorySegment::Of(2, {}, {{Key("c"), Key("d"), 6}}),
      MemorySegment::Of(3, Records({"e", "f"}, 5)), MemorySegment::Of(4, Records({"h"}, 5))};
  const auto opened = [&segments](size_t i) {
    return static_cast<MemorySegment*>(segments[i].get())->iterators();
  };
  const std::unique_ptr<InternalIterator> iterator = NewRunIterator(segments, true);
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek(Key("bb"), kMaxSequence);
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().key, Key("e")) << "past the segment that holds no record";
  EXPECT_EQ(opened(0), 0);
  EXPECT_EQ(opened(3), 0);

  std::string keys;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    keys += iterator->record().key.back();
  EXPECT_EQ(keys, "abefh");
  EXPECT_TRUE(iterator->status().ok());
  keys.clear();
  iterator->SeekToFirst();
  for (const RecordView* record = &iterator->record(); record != nullptr;
       record = iterator->NextKey())
    keys += record->key.back();
  EXPECT_EQ(keys, "abefh");
  keys.clear();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev())
    keys += iterator->record().key.back();
  EXPECT_EQ(keys, "hfeba");
  iterator->Seek(Key("f"), 4);
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->record().key, Key("h")) << "older than what the segment holds of the key";
  iterator->Prev();
  EXPECT_EQ(iterator->record().key, Key("f"));
  iterator->Seek(Key("i"), kMaxSequence);
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_TRUE(iterator->Valid());

  const std::unique_ptr<InternalIterator> empty =
      NewRunIterator(absl::Span<const std::shared_ptr<Segment>>(), true);
  empty->SeekToFirst();
  EXPECT_FALSE(empty->Valid());
  empty->SeekToLast();
  EXPECT_FALSE(empty->Valid());
}

}  // namespace
}  // namespace varve
