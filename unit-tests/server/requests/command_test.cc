#include "server/requests/command.h"

#include <gtest/gtest.h>

#include <array>

namespace varve {
namespace {

using Words = std::array<std::string_view, 3>;

constexpr Subcommand kSubcommands[] = {
    {.name = "box|open", .arity = 3, .flags = kReadCommand, .summary = "Opens.", .syntax = "key"},
    {.name = "box|shut", .arity = 2, .summary = "Shuts."}};

Command Box() {
  return {.name = "box",
          .arity = -2,
          .flags = kContainerCommand,
          .group = "test",
          .summary = "Has subcommands.",
          .syntax = "subcommand",
          .subcommands = kSubcommands};
}

TEST(CommandTest, ArityIsExactOrTheLeast) {
  EXPECT_TRUE(ArityMatches(2, 2));
  EXPECT_FALSE(ArityMatches(2, 3));
  EXPECT_TRUE(ArityMatches(-2, 3));
  EXPECT_FALSE(ArityMatches(-2, 1));
}

TEST(CommandTest, GetTakesWithVersionBesidesItsArity) {
  const Command get{.name = "get", .arity = 2, .keys = kOneKey, .kind = CommandKind::kGet};
  EXPECT_TRUE(TakesArguments(get, Words{"get", "a", "WithVersion"}));
  EXPECT_FALSE(TakesArguments(get, Words{"get", "a", "b"}));
  EXPECT_TRUE(TakesArguments(get, Arguments(Words{"get", "a"}).first(2)));
}

TEST(CommandTest, KeysAreCountedToTheEndOrToTheLast) {
  Command command{.name = "mset", .arity = -3, .keys = {.first = 1, .last = -1, .step = 2}};
  EXPECT_EQ(KeyCount(command, 5), 2u);
  EXPECT_EQ(KeyCount(command, 1), 0u);
  command.keys = kOneKey;
  EXPECT_EQ(KeyCount(command, 5), 1u);
  command.keys = {};
  EXPECT_EQ(KeyCount(command, 5), 0u);
}

TEST(CommandTest, SubcommandsAreFoundInEitherCase) {
  const Command box = Box();
  EXPECT_EQ(FindSubcommand(box, Words{"box", "Open", "a"}), &kSubcommands[0]);
  EXPECT_EQ(FindSubcommand(box, Words{"box", "ope", "a"}), nullptr);
  EXPECT_EQ(FindSubcommand(box, Arguments(Words{"box"}).first(1)), nullptr);
  EXPECT_EQ(kSubcommands[0].word(), "open");
}

TEST(CommandTest, FullNamesFallBackToTheCommand) {
  const Command box = Box();
  EXPECT_STREQ(FullCommandName(box, Words{"BOX", "SHUT"}), "box|shut");
  EXPECT_STREQ(FullCommandName(box, Words{"BOX", "lost"}), "box");
}

TEST(CommandTest, AuthAndHelloWithAuthTryAPassword) {
  constexpr uint32_t kLogin = kSecretArguments | kBeforeLoginCommand;
  const Command auth{.name = "auth", .arity = -2, .flags = kLogin};
  const Command hello{.name = "hello", .arity = -1, .flags = kLogin};
  EXPECT_TRUE(TriesPassword(auth, 2));
  EXPECT_FALSE(TriesPassword(hello, 2));
  EXPECT_TRUE(TriesPassword(hello, 5));
  EXPECT_FALSE(TriesPassword(Box(), 5));
}

}  // namespace
}  // namespace varve
