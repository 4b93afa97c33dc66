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
using ::testing::SizeIs;

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

  std::vector<std::string> Violations(const Exceptions& exceptions = {}) const {
    return FindViolations(tree_.path(), exceptions);
  }

  testing::TempDir tree_;
};

TEST(SourceTreeTest, KeepsTheRules) {
  EXPECT_THAT(FindViolations(VARVE_SOURCE_DIR, KnownExceptions()), IsEmpty());
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
  WriteHeader("db/log/log.h");
  WriteHeader("db/engine/engine.h", "#include \"db/log/log.h\"\n");
  WriteHeader("db/format/record.h", "#include \"db/log/log.h\"\n");
  WriteHeader("util/base/coding.h", "#include \"db/log/log.h\"\n");
  EXPECT_THAT(Violations(),
              ElementsAre(AllOf(HasSubstr("db/format/record.h:3"), HasSubstr("db/log/log.h")),
                          AllOf(HasSubstr("util/base/coding.h:3"), HasSubstr("db/log/log.h"))));
}

TEST_F(SourceRulesTest, AnExceptionHoldsAsLongAsItIsNeeded) {
  const Exceptions exceptions{.arrows = {{"db/format", "db/log"}}};
  WriteHeader("db/log/log.h");
  WriteHeader("db/format/record.h", "#include \"db/log/log.h\"\n");
  EXPECT_THAT(Violations(exceptions), IsEmpty());
  WriteHeader("db/format/record.h");
  EXPECT_THAT(Violations(exceptions),
              ElementsAre(HasSubstr("db/format -> db/log is not needed any more")));
}

TEST_F(SourceRulesTest, PublicHeadersIncludeNothingPrivate) {
  WriteHeader("type/key.h");
  WriteHeader("include/varve/status.h");
  WriteHeader("include/varve/store.h", "#include \"type/key.h\"\n#include \"varve/status.h\"\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("include/varve/store.h:3")));
}

TEST_F(SourceRulesTest, TheClientDoesNotSeeTheEngine) {
  WriteHeader("db/engine/engine.h");
  Write("client/client.cc", "#include \"db/engine/engine.h\"\n");
  Write("client/cli/run.cc", "#include \"db/engine/engine.h\"\n");
  // Its program, which links both.
  Write("client/program/client_main.cc", "#include \"db/engine/engine.h\"\n");
  Write("unit-tests/client/client_test.cc", "#include \"db/engine/engine.h\"\n");
  EXPECT_THAT(Violations(),
              ElementsAre(HasSubstr("client/cli/run.cc:1"), HasSubstr("client/client.cc:1"),
                          HasSubstr("client_test.cc:1")));
}

TEST_F(SourceRulesTest, IncludesAreNamedFromTheRoot) {
  WriteHeader("include/varve/store.h");
  Write("db/engine/store.cc",
        "#include \"store.h\"\n#include \"../include/varve/store.h\"\n"
        "#include \"include/varve/store.h\"\n#include \"db/engine/gone.h\"\n");
  EXPECT_THAT(Violations(),
              ElementsAre(HasSubstr("store.cc:1"), HasSubstr("store.cc:2"), HasSubstr("store.cc:3"),
                          AllOf(HasSubstr("store.cc:4"), HasSubstr("does not exist"))));
}

TEST_F(SourceRulesTest, CodeLiesInARoom) {
  Write("db/stray.cc", "int x;\n");
  Write("db/cellar/stray.cc", "int x;\n");
  EXPECT_THAT(Violations(),
              ElementsAre(AllOf(HasSubstr("db/cellar/stray.cc"), HasSubstr("no room")),
                          AllOf(HasSubstr("db/stray.cc"), HasSubstr("no room"))));
}

TEST_F(SourceRulesTest, AHeaderSaysWhatItIsForAndIsIncludedOnce) {
  Write("util/base/bare.h", "#pragma once\n");
  Write("util/base/twice.h", "// A header.\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("bare.h:1: a header opens with a comment"),
                                        HasSubstr("twice.h:1: a header has #pragma once")));
}

TEST_F(SourceRulesTest, ANameOfTwoTypesIsFound) {
  const std::string head = "// A header.\n#pragma once\n";
  Write("db/log/a.h", head + "struct Survey;\nstruct Survey {\n  struct Gap {};\n};\n");
  Write("tools/a.h",
        head + "struct Survey;\nclass Other : public Survey {\n  struct Gap {};\n};\n");
  EXPECT_THAT(Violations(), IsEmpty());
  Write("tools/b.h", head + "struct Survey {\n};\n");
  EXPECT_THAT(Violations(),
              ElementsAre(AllOf(HasSubstr("tools/b.h:3"), HasSubstr("type in db/log/a.h"))));
}

TEST_F(SourceRulesTest, CrowdedFoldersAreFound) {
  for (size_t i = 0; i < kMaxFiles; ++i) {
    Write("db/log/part_" + std::to_string(i) + ".cc", "int x;\n");
  }
  EXPECT_THAT(Violations(), IsEmpty());
  Write("db/log/one_more.cc", "int y;\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/log: 41 files")));
}

TEST_F(SourceRulesTest, LongLinesOfCodeAreFound) {
  std::string full = "// ";
  while (full.size() < kMaxColumns) full += 'x';
  Write("db/log/line.cc", full + "\n");
  Write("db/log/letters.cc", full.substr(0, 98) + "\u00fc\u00fc\n");  // two bytes each
  Write("README.md", full + full + "\n");
  EXPECT_THAT(Violations(), IsEmpty());
  Write("db/log/line.cc", "int x;\n" + full + "x\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/log/line.cc:2: 101 columns")));
}

TEST_F(SourceRulesTest, LongFunctionsAreFound) {
  const auto function = [](size_t lines) {
    std::string text = "int Log::Work() {\n";
    for (size_t i = 2; i < lines; ++i) text += "  Step();\n";
    return text + "}\n";
  };
  Write("db/log/work.cc", function(kMaxFunctionLines));
  EXPECT_THAT(Violations(), IsEmpty());
  Write("db/log/work.cc", function(kMaxFunctionLines + 1));
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/log/work.cc:1: Log::Work has 61 lines")));
  EXPECT_THAT(Violations({.long_functions = {"Log::Work"}}), IsEmpty());
  EXPECT_THAT(Violations({.long_functions = {"Log::Rest", "Log::Work"}}),
              ElementsAre(HasSubstr("Log::Rest is not needed any more")));
}

TEST_F(SourceRulesTest, LargeClassesAreFound) {
  const auto type = [](size_t members, size_t functions) {
    std::string text = "class Log {\n";
    for (size_t i = 0; i < functions; ++i) text += "  void Do" + std::to_string(i) + "();\n";
    for (size_t i = 0; i < members; ++i) text += "  int part_" + std::to_string(i) + "_ = 0;\n";
    return text + "};\n";
  };
  WriteHeader("db/log/log.h", type(kMaxMembers, kMaxFunctions));
  EXPECT_THAT(Violations(), IsEmpty());
  WriteHeader("db/log/log.h", type(kMaxMembers + 1, 0));
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("log.h:3: Log has 26 data members")));
  WriteHeader("db/log/log.h", type(0, kMaxFunctions + 1));
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("and 41 functions")));
  EXPECT_THAT(Violations({.large_classes = {"Log"}}), IsEmpty());
  EXPECT_THAT(Violations({.tables = {{"Log", "one function a counter"}}}), IsEmpty());
  EXPECT_THAT(Violations({.large_classes = {"Log"}, .tables = {{"Options", "settings"}}}),
              ElementsAre(HasSubstr("Options is not needed any more")));
}

TEST_F(SourceRulesTest, CommentsOfHeadersAreSentences) {
  const std::string text =
      "// Returns whether it is open.\n// Whether that lasts is another question.\n"
      "bool Open();\n"
      "// Whether it is closed.\nbool Closed();\n"
      "int keys = 0;  // Of one file.\n"
      "int offset = 0;  // Offset, in bytes.\n";
  WriteHeader("db/log/log.h", text);
  WriteHeader("unit-tests/testing/log.h", text);
  EXPECT_THAT(Violations(), ElementsAre(AllOf(HasSubstr("log.h:6"), HasSubstr("fragment")),
                                        HasSubstr("log.h:8")));
  EXPECT_THAT(Violations({.fragments = 1}), SizeIs(2)) << "all are shown where it is one too many";
  EXPECT_THAT(Violations({.fragments = 2}), IsEmpty());
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
  Write("db/log/half.cc", std::string("// TO") + "DO: the other half\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/log/half.cc:1")));
}

TEST_F(SourceRulesTest, ALoopThroughWhatATemporaryHoldsIsFound) {
  Write("db/log/log.cc",
        "for (const File& file : versions_->Present()"
        "->files()) Use(file);\n"
        "for (const File& file : version->files()) Use(file);\n"
        "for (int i = 0; i < Present()->size(); ++i) Use(i);\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("db/log/log.cc:1: a loop through")));
}

TEST(ArrowsTest, PointDown) {
  EXPECT_TRUE(MayInclude("db/engine", "util/base"));
  EXPECT_TRUE(MayInclude("db/engine", "db/log"));
  EXPECT_TRUE(MayInclude("db/engine", "db/engine"));
  EXPECT_TRUE(MayInclude("tools", "db/engine"));
  EXPECT_TRUE(MayInclude("server/net", "server/commands"));
  EXPECT_TRUE(MayInclude("benchmark/server", "server"));
  EXPECT_FALSE(MayInclude("db/log", "db/engine"));
  EXPECT_FALSE(MayInclude("util/base", "util/os"));
  EXPECT_FALSE(MayInclude("include/varve", "type"));
  EXPECT_FALSE(MayInclude("server/commands", "tools")) << "they stand side by side";
  EXPECT_FALSE(MayInclude("client", "structure"));
  EXPECT_FALSE(MayInclude("client", "client/cli"));
  EXPECT_FALSE(MayInclude("server", "benchmark"));
  EXPECT_FALSE(MayInclude("elsewhere", "type"));
}

TEST(ArrowsTest, TestsMayIncludeWhatTheirRoomMay) {
  EXPECT_TRUE(MayInclude("unit-tests/db/log", "db/log"));
  EXPECT_TRUE(MayInclude("unit-tests/db/log", "include/varve"));
  EXPECT_TRUE(MayInclude("unit-tests/db/log", "tools"));
  EXPECT_TRUE(MayInclude("unit-tests/db/log", "unit-tests/testing"));
  EXPECT_TRUE(MayInclude("unit-tests/db/engine", "unit-tests/db/log"));
  EXPECT_TRUE(MayInclude("unit-tests/testing", "db/segment"));
  EXPECT_TRUE(MayInclude("unit-tests/server/net", "client"));
  EXPECT_TRUE(MayInclude("unit-tests/server/net", "unit-tests/server"));
  EXPECT_TRUE(MayInclude("unit-tests/server", "server/net"));
  EXPECT_TRUE(MayInclude("unit-tests/client", "client/cli"));
  EXPECT_FALSE(MayInclude("unit-tests/db/log", "db/engine"));
  EXPECT_FALSE(MayInclude("unit-tests/db/log", "unit-tests/db/engine"));
  EXPECT_FALSE(MayInclude("unit-tests/db/log", "server/net"));
  EXPECT_FALSE(MayInclude("unit-tests/db/log", "unit-tests/server"));
  EXPECT_FALSE(MayInclude("unit-tests/testing", "server"));
  EXPECT_FALSE(MayInclude("unit-tests/testing", "unit-tests/db/log"));
  EXPECT_FALSE(MayInclude("db/log", "unit-tests/testing"));
}

}  // namespace
}  // namespace varve
