#include "varve/write_batch.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

// Writes down what it visits.
class Recorder final : public WriteBatch::OperationVisitor, public WriteBatch::ConditionVisitor {
 public:
  absl::Status Put(NamespaceId space, std::string_view key, std::string_view value,
                   const PutExtras& extras) override {
    std::string rest = extras.expiry_ms == kNoExpiry ? "" : std::to_string(extras.expiry_ms);
    if (!extras.metadata.empty()) rest.append("+").append(extras.metadata);
    if (extras.cause == WriteCause::kMetadataChange) rest.append("!");
    return Note("put", space, key, value, rest);
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause cause) override {
    return Note(cause == WriteCause::kEvicted ? "evict" : "delete", space, key);
  }
  absl::Status DeleteRange(NamespaceId space, std::string_view begin,
                           std::string_view end) override {
    return Note("delete range", space, begin, end);
  }
  absl::Status ClearNamespace(NamespaceId space) override { return Note("clear", space); }
  absl::Status CreateNamespace(const NamespaceDescription& space) override {
    return Note("create", space.id, space.name);
  }
  absl::Status CloneNamespace(NamespaceId source, const NamespaceDescription& space) override {
    return Note("clone", space.id, space.name, std::to_string(source));
  }
  absl::Status AlterNamespace(const NamespaceDescription& space) override {
    return Note("alter", space.id, space.name, std::to_string(space.options.max_keys));
  }
  absl::Status DropNamespace(NamespaceId space) override { return Note("drop", space); }
  absl::Status SwapNamespaces(NamespaceId one, NamespaceId other) override {
    return Note("swap", one, std::to_string(other));
  }
  absl::Status Unchanged(NamespaceId space, std::string_view key,
                         const WriteBatch::ReadPoint& read) override {
    return Note("unchanged", space, key, Words(read));
  }
  absl::Status NotPut(NamespaceId space, std::string_view key,
                      const WriteBatch::ReadPoint& read) override {
    return Note("not put", space, key, Words(read));
  }
  absl::Status RangeUnchanged(NamespaceId space, std::string_view begin, std::string_view end,
                              SequenceNumber sequence) override {
    return Note("range unchanged", space, begin, end, std::to_string(sequence));
  }

  std::string text;
  absl::Status answer;

 private:
  static std::string Words(const WriteBatch::ReadPoint& read) {
    return std::to_string(read.sequence) + "/" +
           (read.version ? std::to_string(*read.version) : "unknown");
  }
  absl::Status Note(std::string_view what, NamespaceId space, std::string_view first = {},
                    std::string_view second = {}, std::string_view third = {}) {
    text.append(what).append(" ").append(std::to_string(space));
    for (const std::string_view each : {first, second, third}) text.append(" ").append(each);
    text.resize(text.find_last_not_of(' ') + 1);
    text.append("; ");
    return answer;
  }
};

TEST(WriteBatchTest, AVisitorSeesTheOperationsAsTheyWereAdded) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.UseNamespace(3, 77);
  batch.Put("b", "2");
  batch.Put("c", "3", 4, 99);
  batch.Delete("d");
  batch.DeleteRange("e", "f");
  batch.DeleteRange("g", "");
  batch.ClearNamespace(5);
  Recorder recorder;
  ASSERT_TRUE(batch.ForEachOperation(&recorder).ok());
  EXPECT_EQ(recorder.text,
            "put 0 a 1; put 3 b 2 77; put 4 c 3 99; delete 3 d; delete range 3 e f; "
            "delete range 3 g; clear 5; ");
}

TEST(WriteBatchTest, AVisitorSeesMetadataAndCauses) {
  WriteBatch batch;
  batch.Put("a", "1", {.metadata = "m", .cause = WriteCause::kMetadataChange});
  batch.UseNamespace(3, 77);
  batch.Put("b", std::string(2000, 'v'), {.metadata = "n"});
  batch.Delete("c", kSelectedNamespace, WriteCause::kEvicted);
  Recorder recorder;
  ASSERT_TRUE(batch.ForEachOperation(&recorder).ok());
  EXPECT_EQ(recorder.text,
            "put 0 a 1 +m!; put 3 b " + std::string(2000, 'v') + " 77+n; evict 3 c; ");
}

TEST(WriteBatchTest, AVisitorSeesChangesOfNamespaces) {
  WriteBatch batch;
  batch.CreateNamespace({.id = 1, .name = "one"});
  batch.AlterNamespace({.id = 1, .name = "uno", .options = {.max_keys = 9}});
  batch.SwapNamespaces(1, 2);
  batch.DropNamespace(1);
  batch.CloneNamespace(2, {.id = 8, .name = "copy"});
  Recorder recorder;
  ASSERT_TRUE(batch.ForEachOperation(&recorder).ok());
  EXPECT_EQ(recorder.text, "create 1 one; alter 1 uno 9; swap 1 2; drop 1; clone 8 copy 2; ");
}

TEST(WriteBatchTest, LargeValuesAndAnyBytesAreVisitedAsTheyAre) {
  const std::string key("k\0\xff", 3);
  const std::string value(1 << 20, '\x80');
  WriteBatch batch;
  batch.Put(key, value);
  Recorder recorder;
  ASSERT_TRUE(batch.ForEachOperation(&recorder).ok());
  EXPECT_EQ(recorder.text, "put 0 " + key + " " + value + "; ");
}

TEST(WriteBatchTest, AConditionCarriesTheVersionThatWasRead) {
  ReadResult found;
  found.found = true;
  found.version = 7;
  found.read_sequence = 12;
  ReadResult missing;
  missing.read_sequence = 13;
  WriteBatch batch;
  batch.RequireUnchanged("a", found);
  batch.RequireUnchanged("b", missing, 2);
  batch.RequireUnchanged("c", SequenceNumber{14});
  batch.RequireNotPut("d", WriteBatch::ReadPoint(missing));
  batch.RequireRangeUnchanged("e", "", 15);
  batch.RequireRangeUnchanged("f", "g", 16);
  Recorder recorder;
  ASSERT_TRUE(batch.ForEachCondition(&recorder).ok());
  EXPECT_EQ(recorder.text,
            "unchanged 0 a 12/7; unchanged 2 b 13/0; unchanged 0 c 14/unknown; not put 0 d 13/0; "
            "range unchanged 0 e  15; range unchanged 0 f g 16; ");
}

TEST(WriteBatchTest, AVisitorThatFailsEndsTheWalk) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  Recorder recorder;
  recorder.answer = absl::CancelledError("enough");
  EXPECT_TRUE(absl::IsCancelled(batch.ForEachOperation(&recorder)));
  EXPECT_EQ(recorder.text, "put 0 a 1; ");
}

TEST(WriteBatchTest, ABatchThatCouldNotTakeAnOperationIsNotWalked) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put(std::string(kMaxKeySize + 1, 'k'), "v");
  Recorder recorder;
  EXPECT_TRUE(absl::IsInvalidArgument(batch.ForEachOperation(&recorder)));
  EXPECT_EQ(recorder.text, "");
}

}  // namespace
}  // namespace varve
