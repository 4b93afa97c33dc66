#include "server/requests/command.h"

#include <gtest/gtest.h>

#include <array>

namespace varve {
namespace {

using Words = std::array<std::string_view, 3>;

constexpr Subcommand kSubcommands[] = {{"box|open", 3, kReadCommand, "Opens.", "key"},
                                       {"box|shut", 2, kNoCommandFlags, "Shuts.", ""}};

Command Box() {
  Command command{"box",   -2,     kContainerCommand,  0,           0, 0, CommandKind::kOther,
                  nullptr, "test", "Has subcommands.", "subcommand"};
  command.subcommands = kSubcommands;
  return command;
}

TEST(CommandTest, ArityIsExactOrTheLeast) {
  EXPECT_TRUE(ArityMatches(2, 2));
  EXPECT_FALSE(ArityMatches(2, 3));
  EXPECT_TRUE(ArityMatches(-2, 3));
  EXPECT_FALSE(ArityMatches(-2, 1));
}

TEST(CommandTest, GetTakesWithVersionBesidesItsArity) {
  const Command get{"get", 2, kReadCommand, 1, 1, 1, CommandKind::kGet, nullptr, "", "", "key"};
  EXPECT_TRUE(TakesArguments(get, Words{"get", "a", "WithVersion"}));
  EXPECT_FALSE(TakesArguments(get, Words{"get", "a", "b"}));
  EXPECT_TRUE(TakesArguments(get, Arguments(Words{"get", "a"}).first(2)));
}

TEST(CommandTest, KeysAreCountedToTheEndOrToTheLast) {
  Command command{"mset", -3, kWriteCommand, 1, -1, 2, CommandKind::kOther, nullptr, "", "", ""};
  EXPECT_EQ(KeyCount(command, 5), 2u);
  EXPECT_EQ(KeyCount(command, 1), 0u);
  command.last_key = command.key_step = 1;
  EXPECT_EQ(KeyCount(command, 5), 1u);
  command.first_key = 0;
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
  const Command auth{"auth", -2, kLogin, 0, 0, 0, CommandKind::kOther, nullptr, "", "", ""};
  const Command hello{"hello", -1, kLogin, 0, 0, 0, CommandKind::kOther, nullptr, "", "", ""};
  EXPECT_TRUE(TriesPassword(auth, 2));
  EXPECT_FALSE(TriesPassword(hello, 2));
  EXPECT_TRUE(TriesPassword(hello, 5));
  EXPECT_FALSE(TriesPassword(Box(), 5));
}

}  // namespace
}  // namespace varve
