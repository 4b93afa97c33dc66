// The quick halves of decoding: sequences with one load, and keys that are joined without a call.
#include "db/format/record_decoding.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "db/format/key_base.h"
#include "util/base/coding.h"

namespace varve {
namespace {

// Returns the encoding, and readable bytes behind it that end every varint.
std::string Readable(std::string encoded) { return encoded + std::string(16, '\x55'); }

TEST(DecodeShortSequenceTest, TakesEachWidthAsTheVarintReaderDoes) {
  for (int bits = 0; bits <= 56; ++bits) {
    for (const uint64_t value : {(uint64_t{1} << bits) - 1, uint64_t{1} << bits,
                                 (uint64_t{0x5a5a5a5a5a5a5a5a} & ((uint64_t{2} << bits) - 1))}) {
      std::string encoded;
      PutVarint64(&encoded, value);
      uint64_t decoded = ~value;
      const size_t size = DecodeShortSequence(Readable(encoded).data(), &decoded);
      if (encoded.size() > 8) {
        EXPECT_EQ(size, 0u) << value << " is longer";
      } else {
        EXPECT_EQ(size, encoded.size()) << value;
        EXPECT_EQ(decoded, value);
      }
    }
  }
}

TEST(DecodeShortSequenceTest, RefusesWhatHasAShorterForm) {
  for (size_t size = 2; size <= 8; ++size) {
    std::string encoded(size - 1, '\x81');
    encoded.push_back('\0');
    uint64_t decoded = 0;
    EXPECT_EQ(DecodeShortSequence(Readable(encoded).data(), &decoded), 0u) << size;
  }
}

class KeyJoinerTest : public ::testing::Test {
 protected:
  KeyJoinerTest() { keys_.SetBase(base_); }
  // Returns the key of which a record holds `rest`, of whose memory so many bytes may be read.
  std::string Join(uint32_t shared, std::string_view rest, size_t readable) {
    const std::string memory = std::string(rest) + std::string(64, '#');
    std::string_view key(memory.data(), rest.size());
    EXPECT_TRUE(keys_.Join(shared, readable, &key));
    return std::string(key);
  }
  bool JoinQuickly(uint32_t shared, std::string_view rest, size_t readable) {
    const std::string memory = std::string(rest) + std::string(64, '#');
    std::string_view key(memory.data(), rest.size());
    return keys_.JoinQuickly(shared, readable, &key) &&
           key == base_.substr(0, shared) + std::string(rest);
  }

  const std::string base_ = "the base of all keys";
  KeyJoiner keys_;
};

TEST_F(KeyJoinerTest, JoinsWhateverTheQuickWayRefuses) {
  EXPECT_FALSE(JoinQuickly(4, "rest", 64)) << "the buffer is too small";
  EXPECT_EQ(Join(4, "rest", 64), "the rest");
  EXPECT_TRUE(JoinQuickly(4, "other", 64));
  EXPECT_FALSE(JoinQuickly(8, "rest", 64)) << "the buffer does not hold as much of the base";
  EXPECT_EQ(Join(8, "rest", 64), "the baserest");
  EXPECT_TRUE(JoinQuickly(3, "rest", 64));
  EXPECT_FALSE(JoinQuickly(8, "rest", 64)) << "the last key stands there";
  EXPECT_EQ(Join(8, "rest", 64), "the baserest");
  EXPECT_FALSE(JoinQuickly(8, "of more than sixteen", 64));
  EXPECT_EQ(Join(8, " of more than sixteen", 64), "the base of more than sixteen");
  EXPECT_FALSE(JoinQuickly(8, "rest", 15)) << "the memory ends";
  EXPECT_EQ(Join(8, "rest", 15), "the baserest");
}

TEST_F(KeyJoinerTest, RefusesWhatSharesMoreThanTheBase) {
  std::string_view key = "rest";
  EXPECT_FALSE(keys_.Join(static_cast<uint32_t>(base_.size()) + 1, 4, &key));
  EXPECT_EQ(Join(static_cast<uint32_t>(base_.size()), "!", 1), base_ + "!");
}

}  // namespace
}  // namespace varve
