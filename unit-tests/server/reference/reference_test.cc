// The pages of docs/reference say what the program says. `make docs-reference` runs these tests
// with VARVE_WRITE_REFERENCE set, and then they write the pages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "server/http/varve_metrics.h"
#include "unit-tests/server/command_fixture.h"
#include "unit-tests/server/http/hbase_figures.h"
#include "unit-tests/server/reference/reference_pages.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve::reference {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = VARVE_SOURCE_DIR "/docs/reference";

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void ComparePage(const std::string& name, const std::string& page) {
  if (std::getenv("VARVE_WRITE_REFERENCE") != nullptr) {
    fs::create_directories(kFolder);
    std::ofstream(kFolder / name) << page;
  }
  // The whole texts would be no help: the difference is shown by version control.
  EXPECT_TRUE(ReadAll(kFolder / name) == page)
      << "docs/reference/" << name << " is stale; run: make docs-reference";
}

TEST(ReferenceTest, Commands) {
  const std::map<std::string, std::string> pages = CommandPages();
  for (const auto& [name, page] : pages) ComparePage(name, page);
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(!name.starts_with("commands") || pages.contains(name))
        << "docs/reference/" << name << " is the page of no group of commands; remove it";
  }
}

TEST(ReferenceTest, Settings) { ComparePage("settings.md", SettingPage()); }

// The tables are a part of a page that is written by hand.
TEST(ReferenceTest, WhatCommandsNeedOfTheStore) {
  const fs::path path = VARVE_SOURCE_DIR "/docs/scale.md";
  const std::string begin = "<!-- The tables begin. -->\n";
  const std::string page = ReadAll(path);
  const size_t from = page.find(begin) + begin.size();
  const size_t to = page.find("<!-- The tables end. -->", from);
  ASSERT_NE(page.find(begin), std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string tables = StoreNeedTables();
  if (std::getenv("VARVE_WRITE_REFERENCE") != nullptr)
    std::ofstream(path) << page.substr(0, from) << tables << page.substr(to);
  EXPECT_TRUE(page.substr(from, to - from) == tables)
      << "docs/scale.md is stale; run: make docs-reference";
}

using MetricReferenceTest = testing::CommandTest;

// Every family has a sample, so that its labels are seen. What a server over HBase shows besides
// comes last.
TEST_F(MetricReferenceTest, Metrics) {
  const testing::TempDir folder;
  testing::TestCertificates certificates(folder.path());
  certificates.Issue("server", {.common_name = "server"});
  ASSERT_EQ(Do({"config", "set", "tls", "optional", "tls-auth-clients", "no", "tls-cert-file",
                certificates.File("server.crt"), "tls-key-file", certificates.File("server.key")}),
            "OK");
  Do({"set", "key", "value"});
  Do({"get"});
  ASSERT_TRUE(server_.store().Flush().ok());
  std::string page;
  // The flush thread lists a segment once it is in use.
  EXPECT_TRUE(testing::Eventually([&] {
    MetricsText text(MetricsText::Format::kPlain);
    WriteVarveMetrics(server_.server().state(), {"key"}, &text);
    WriteStoreFigures(testing::HbaseFigures(), &text);
    page = text.Take();
    return page.find("varve_segments{") != std::string::npos;
  }));
  ComparePage("metrics.md", MetricPage(page));
}

}  // namespace
}  // namespace varve::reference
