#include "unit-tests/layering/source_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

auto Function(const std::string& name, size_t line, size_t lines) {
  return AllOf(Field(&FunctionShape::name, name), Field(&FunctionShape::line, line),
               Field(&FunctionShape::lines, lines));
}

auto Class(const std::string& name, size_t members, size_t functions) {
  return AllOf(Field(&ClassShape::name, name), Field(&ClassShape::members, members),
               Field(&ClassShape::functions, functions));
}

TEST(SourceShapeTest, CommentsLiteralsAndDirectivesAreNoCode) {
  EXPECT_EQ(CodeOf(LinesOf("#define OPEN \\\n  {\n"
                           "int a = 1'000;  // {\n"
                           "char b = '{', c = '\\'';\n"
                           "auto d = \"{\\\"{\"; /* {\n{ */ auto e = R\"(\n{)\";\n")),
            "\n\n"
            "int a = 1'000;  \n"
            "char b = \"\", c = \"\";\n"
            "auto d = \"\"; \n auto e = \"\"\n;\n");
}

TEST(SourceShapeTest, FunctionsAreMeasuredToTheirLastBrace) {
  const SourceShape shape =
      ShapeOf(LinesOf("namespace varve {\n"
                      "const std::map<int, int> kTable = {{1, 2}, {3, 4}};\n"
                      "absl::Status Log::Open(const Options& options,\n"
                      "                       int size) const {\n"
                      "  for (int i : {1, 2}) {\n"
                      "    [] { return 1; }();\n"
                      "  }\n"
                      "}\n"
                      "Log::Log() : size_{1}, name_(\"{\") {}\n"
                      "template <typename T, typename = std::enable_if_t<true>>\n"
                      "auto Make() -> T {\n"
                      "}\n"
                      "TEST(LogTest, Opens) {\n"
                      "}\n"
                      "}\n"));
  EXPECT_THAT(shape.functions,
              ElementsAre(Function("Log::Open", 2, 6), Function("Log::Log", 8, 1),
                          Function("Make", 9, 3), Function("TEST(LogTest, Opens)", 12, 2)));
}

TEST(SourceShapeTest, MembersAndFunctionsOfAClassAreCounted) {
  const SourceShape shape = ShapeOf(LinesOf(
      "template <typename T>\n"
      "class Log final : public Base<T> {\n"
      " public:\n"
      "  explicit Log(int size);\n"
      "  Log(const Log&) = delete;\n"
      "  ~Log() override;\n"
      "  Log& operator=(const Log&) = delete;\n"
      "  static int Largest() { return 7; }\n"
      "  absl::Status Open(std::function<void(int)> told = {}) ABSL_LOCKS_EXCLUDED(mutex_);\n"
      "  friend bool operator==(const Log&, const Log&);\n"
      "\n"
      " private:\n"
      "  struct Part {\n"
      "    int first, second = 0;\n"
      "    bool whole() const { return true; }\n"
      "  };\n"
      "  enum class State { kOpen, kClosed };\n"
      "  using Parts = std::vector<Part>;\n"
      "  void CloseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);\n"
      "\n"
      "  static constexpr int kSize = 3;\n"
      "  mutable absl::Mutex mutex_;\n"
      "  std::function<void(int)> listener_ ABSL_GUARDED_BY(mutex_);\n"
      "  std::map<int, std::pair<int, int>> parts_ ABSL_GUARDED_BY(mutex_){};\n"
      "  std::atomic<bool> open_{false};\n"
      "  State state_ = State::kClosed;\n"
      "};\n"));
  EXPECT_THAT(shape.classes, ElementsAre(Class("Log", 5, 3), Class("Log::Part", 2, 1)));
}

}  // namespace
}  // namespace varve
