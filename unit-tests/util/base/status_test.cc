#include "util/base/status.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusTest, AnIoErrorSaysWhatWhereAndWhatToDo) {
  const absl::Status status = IoError(ENOSPC, "write", "data/000012.log", 4096);
  EXPECT_EQ(std::string(status.message()),
            "write data/000012.log at offset 4096: No space left on device (ENOSPC); free space on "
            "this file system");
  EXPECT_THAT(std::string(IoError(EIO, "rename", "data/x").message()), Not(HasSubstr("offset")));
  EXPECT_THAT(std::string(IoError(4711, "read", "data/x").message()), HasSubstr("error 4711"));
}

TEST(StatusTest, ErrnoDecidesTheCode) {
  const auto code = [](int errno_value) { return IoError(errno_value, "open", "f").code(); };
  for (int exhausted : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM}) {
    EXPECT_EQ(code(exhausted), absl::StatusCode::kResourceExhausted) << exhausted;
  }
  EXPECT_EQ(code(ENOENT), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(EEXIST), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(EACCES), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(EROFS), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(EIO), absl::StatusCode::kInternal) << "a failing device is not yet lost data";
  EXPECT_EQ(code(EBADF), absl::StatusCode::kInternal);
}

TEST(StatusTest, CorruptionNamesFileOffsetAndDamage) {
  const absl::Status status = Corruption("data/7.seg", 8192, "record: checksum differs");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("data/7.seg"), HasSubstr("8192"),
                                                   HasSubstr("record: checksum differs")));
}

absl::Status PassOn(const absl::Status& inner, bool* reached) {
  VARVE_RETURN_IF_ERROR(inner);
  *reached = true;
  return absl::OkStatus();
}

TEST(StatusMacroTest, ReturnIfErrorReturnsErrorsAndOnlyThose) {
  bool reached = false;
  EXPECT_EQ(PassOn(absl::AbortedError("lost"), &reached), absl::AbortedError("lost"));
  EXPECT_FALSE(reached);
  EXPECT_TRUE(PassOn(absl::OkStatus(), &reached).ok());
  EXPECT_TRUE(reached);
}

absl::StatusOr<int> Sum(absl::StatusOr<std::unique_ptr<int>> first, absl::StatusOr<int> second) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<int> owned, std::move(first));
  int plain = 0;
  VARVE_ASSIGN_OR_RETURN(plain, second);
  return *owned + plain;
}

TEST(StatusMacroTest, AssignOrReturnMovesValuesAndReturnsErrors) {
  EXPECT_EQ(Sum(std::make_unique<int>(40), 2).value(), 42);
  EXPECT_EQ(Sum(absl::AbortedError("first"), 2).status(), absl::AbortedError("first"));
  EXPECT_EQ(Sum(std::make_unique<int>(40), absl::AbortedError("second")).status(),
            absl::AbortedError("second"));
}

}  // namespace
}  // namespace varve
