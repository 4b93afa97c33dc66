#include "unit-tests/layering/docs_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A tree of pages that is made up, to see that each rule can be broken.
class DocsRulesTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(tree_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::vector<std::string> Violations() const { return FindDocsViolations(tree_.path()); }

  testing::TempDir tree_;
};

TEST(DocsTest, KeepTheRules) { EXPECT_THAT(FindDocsViolations(VARVE_SOURCE_DIR), IsEmpty()); }

TEST_F(DocsRulesTest, PagesInOrderHaveNoViolations) {
  Write("README.md", "[a page](docs/page.md#a-heading) and [the web](https://varve.example)\n");
  Write("docs/page.md", "# Page\n\n## A heading\n\n`db/log/log.h`, [here](#page)\n");
  Write("db/log/log.h", "");
  EXPECT_THAT(Violations(), IsEmpty());
}

TEST_F(DocsRulesTest, APageOfTooManyWordsIsFound) {
  std::string text;
  for (size_t i = 0; i <= kMaxWords; ++i) text += "word ";
  Write("docs/page.md", text);
  Write("docs/protocol.md", text);
  EXPECT_THAT(Violations(), ElementsAre("docs/page.md: 5001 words, 5000 at most"));
}

TEST_F(DocsRulesTest, ALinkThatLeadsNowhereIsFound) {
  Write("docs/page.md", "# Page\n[a](other.md) [b](#no-heading)\n```\n[c](no_link)\n```\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("links to other.md, which does not exist"),
                                        HasSubstr("links to #no-heading, which is no heading")));
}

TEST_F(DocsRulesTest, APathThatDoesNotExistIsFound) {
  Write("docs/page.md", "`db/log/gone.h` but not `application/json` or `a/b`\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("names `db/log/gone.h`")));
}

TEST_F(DocsRulesTest, ATestThatDoesNotExistIsFound) {
  Write("unit-tests/a_test.cc", "TEST(LogTest, KeepsOrder) {}\n");
  Write("docs/page.md", "`LogTest.KeepsOrder` `LogTest.LosesIt`\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("not there: (LogTest, LosesIt)")));
}

TEST_F(DocsRulesTest, ARecordWithoutItsPartsIsFound) {
  const std::string body =
      "\n\n2026-11-21. Status: Accepted.\n\n## Context\n\n## Decision\n\n## Consequence\n\n"
      "## Figure and command\n";
  Write("docs/decisions/0001-one.md", "# 0001: One" + body);
  Write("docs/decisions/0002-two.md", "# 0001: Two\n\n## Context\n\n## Decision\n");
  Write("docs/decisions/README.md", "[0001](0001-one.md)\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("has not its number"), HasSubstr("has no date"),
                                        HasSubstr("has no heading Consequence"),
                                        HasSubstr("has no heading Figure and command"),
                                        HasSubstr("is not in the index")));
}

TEST_F(DocsRulesTest, AGlossaryOfTooManyWordsIsFound) {
  std::string text = "# Glossary\n\n| word | meaning |\n| --- | --- |\n";
  for (size_t i = 0; i < kMaxHouseWords; ++i) text += "| `a` | b |\n";
  Write("docs/glossary.md", text);
  EXPECT_THAT(Violations(), IsEmpty());
  Write("docs/glossary.md", text + "| `a` | b |\n");
  EXPECT_THAT(Violations(), ElementsAre("docs/glossary.md: defines 16 words, 15 at most"));
}

TEST(DocsRulesPartsTest, AnAnchorIsTheHeadingInSmallLettersWithDashes) {
  EXPECT_EQ(AnchorOf("What to do when"), "what-to-do-when");
  EXPECT_EQ(AnchorOf("Versions, events, `DUMP`"), "versions-events-dump");
}

TEST(DocsRulesPartsTest, TheRowsAreThoseOfTheTableBelowTheHeading) {
  EXPECT_THAT(TableRows("## A\n| x | y |\n## B\n| h | i |\n| --- | --- |\n| `j` | k |\n", "B"),
              ElementsAre(ElementsAre("j", "k")));
}

TEST_F(DocsRulesTest, AThreadThatIsMissingOrGoneIsFound) {
  Write("db/log/log.cc", "  NameThread(\"varve-log\");\n");
  Write("server/server.cc", "  NameThread(fmt::format(\"varve-io-{}\", i));\n");
  const std::string head = "## Threads\n\n| thread | does |\n| --- | --- |\n";
  Write("docs/architecture.md", head + "| `varve-log` | a |\n| `varve-io-0`, ... | b |\n");
  EXPECT_THAT(Violations(), IsEmpty());
  Write("docs/architecture.md", head + "| `varve-log` | a |\n| `varve-idle` | b |\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("does not list the thread varve-io-0"),
                                        HasSubstr("lists a thread varve-idle")));
}

TEST_F(DocsRulesTest, ALockThatIsMissingOrGoneOrTooHighIsFound) {
  Write("db/log/log.h",
        "  absl::Mutex first_ ABSL_ACQUIRED_BEFORE(second_);\n"
        "  mutable absl::Mutex second_;\n");
  const std::string head = "## Locks\n\n| lock | in |\n| --- | --- |\n";
  const std::string first = "| `first_` | `db/log/log.h` |\n";
  const std::string second = "| `second_` | `db/log/log.h` |\n";
  Write("docs/architecture.md", head + first + second);
  EXPECT_THAT(Violations(), IsEmpty());
  Write("docs/architecture.md", head + second + first);
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("second_ in db/log/log.h stands above first_")));
  Write("docs/architecture.md", head + first + "| `third_` | `db/log/log.h` |\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("does not list the lock second_"),
                                        HasSubstr("lists a lock third_")));
}

TEST_F(DocsRulesTest, AMessageThatNoSourceHasIsFound) {
  Write("db/hbase/store.cc",
        "  return fmt::format(\n"
        "      \"table {} was not \"\n"
        "      \"made here; use {}\", table, other);\n"
        "  return \"go away\";\n");
  const std::string head = "## A server over HBase\n\n| the message | do |\n| --- | --- |\n";
  const std::string good = "| `table ... was not made here; use ...` | a |\n| `go away` | b |\n";
  Write("docs/troubleshooting.md", head + good);
  EXPECT_THAT(Violations(), IsEmpty());
  Write("docs/troubleshooting.md", head + good +
                                       "| `table ... was made here` | c |\n"
                                       "| `made here ... table` | d |\n");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("no source has: table ... was made here"),
                                        HasSubstr("no source has: made here ... table")));
  Write("docs/troubleshooting.md", "");
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("has no messages of a server over HBase")));
}

}  // namespace
}  // namespace varve
