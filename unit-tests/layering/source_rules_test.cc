#include "unit-tests/layering/source_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A tree that is made up, to see that each rule can be broken.
class SourceRulesTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(tree_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  void WriteHeader(const std::string& path, const std::string& text = "") {
    Write(path, "// Says what it is for.\n#pragma once\n" + text);
  }

  std::vector<std::string> Violations() const { return FindViolations(tree_.path()); }

  testing::TempDir tree_;
};

TEST(SourceTreeTest, KeepsTheRules) {
  EXPECT_THAT(FindViolations(VARVE_SOURCE_DIR), IsEmpty());
  EXPECT_GT(CountScannedFiles(VARVE_SOURCE_DIR), 20u) << "the scan does not see the tree";
}

TEST_F(SourceRulesTest, ATreeInOrderHasNoViolations) {
  WriteHeader("type/key.h");
  WriteHeader("util/base/coding.h",
              "#include <string>\n#include \"absl/status/status.h\"\n#include \"type/key.h\"\n");
  Write("server/server.cc", "#include \"util/base/coding.h\"\n");
  WriteHeader("unit-tests/testing/temp.h");
  Write("unit-tests/util/base/coding_test.cc",
        "#include \"util/base/coding.h\"\n#include \"unit-tests/testing/temp.h\"\n");
  EXPECT_THAT(Violations(), IsEmpty());
  EXPECT_EQ(CountScannedFiles(tree_.path()), 5u);
}

TEST_F(SourceRulesTest, AnArrowThatPointsUpIsFound) {
  WriteHeader("include/varve/store.h");
  WriteHeader("util/base/coding.h", "#include \"include/varve/store.h\"\n");
  EXPECT_THAT(Violations(), ElementsAre(AllOf(HasSubstr("util/base/coding.h:3"),
                                              HasSubstr("include/varve/store.h"))));
}

TEST_F(SourceRulesTest, TheClientDoesNotSeeTheEngine) {
  WriteHeader("include/varve/store.h");
  Write("client/client.cc", "#include \"include/varve/store.h\"\n");
  Write("client/cli/run.cc", "#include \"include/varve/store.h\"\n");
  // Its program, which links both.
  Write("client/client_main.cc", "#include \"include/varve/store.h\"\n");
  Write("unit-tests/client/client_test.cc", "#include \"include/varve/store.h\"\n");
  EXPECT_THAT(Violations(),
              ElementsAre(HasSubstr("client/cli/run.cc:1"), HasSubstr("client/client.cc:1"),
                          HasSubstr("client_test.cc:1")));
}

TEST_F(SourceRulesTest, IncludesAreNamedFromTheRoot) {
  WriteHeader("include/varve/store.h");
  Write("db/store.cc",
        "#include \"store.h\"\n#include \"../include/varve/store.h\"\n#include \"db/gone.h\"\n");
  EXPECT_THAT(Violations(),
              ElementsAre(HasSubstr("store.cc:1"), HasSubstr("store.cc:2"),
                          AllOf(HasSubstr("store.cc:3"), HasSubstr("does not exist"))));
}

TEST_F(SourceRulesTest, AHeaderSaysWhatItIsForAndIsIncludedOnce) {
  Write("util/bare.h", "#pragma once\n");
  Write("util/twice.h", "// A header.\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("bare.h:1: a header opens with a comment"),
                                        HasSubstr("twice.h:1: a header has #pragma once")));
}

TEST_F(SourceRulesTest, LongFilesAreFound) {
  std::string text;
  for (int i = 0; i < kMaxLines; ++i) text += "int x;\n";
  Write("db/full.cc", text);
  EXPECT_THAT(Violations(), IsEmpty());
  Write("db/full.cc", text + "int y;\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/full.cc:421")));
}

TEST_F(SourceRulesTest, PathsOfOneMachineAreFoundInAnyFile) {
  const std::string path = std::string("/wo") + "rk/varve";
  Write("README.md", "Go to " + path + ".\n");
  Write(".ci/run", "cd " + path + "\n");
  Write("build/generated.txt", path);
  Write("data/notes.txt", path);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr(".ci/run:1"), HasSubstr("README.md:1")));
}

TEST_F(SourceRulesTest, LeftoversAreFound) {
  Write("db/half.cc", std::string("// TO") + "DO: the other half\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/half.cc:1")));
}

TEST(ArrowsTest, PointDown) {
  EXPECT_TRUE(MayInclude("db", "util"));
  EXPECT_TRUE(MayInclude("unit-tests/db", "db"));
  EXPECT_TRUE(MayInclude("unit-tests/db", "unit-tests/testing"));
  EXPECT_TRUE(MayInclude("unit-tests/testing", "db"));
  EXPECT_TRUE(MayInclude("unit-tests/server", "client"));
  EXPECT_TRUE(MayInclude("benchmark", "server"));
  EXPECT_FALSE(MayInclude("unit-tests/db", "server"));
  EXPECT_FALSE(MayInclude("unit-tests/db", "unit-tests/server"));
  EXPECT_FALSE(MayInclude("db", "unit-tests/testing"));
  EXPECT_FALSE(MayInclude("server", "benchmark"));
  EXPECT_FALSE(MayInclude("unit-tests/testing", "server"));
  EXPECT_FALSE(MayInclude("elsewhere", "type"));
}

}  // namespace
}  // namespace varve
