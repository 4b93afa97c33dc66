#include "client/move/move_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

MoveState SomeState() {
  MoveState state;
  state.route = "from here to there, all namespaces";
  state.feed = "varve-move-1";
  state.history_id = UINT64_MAX;
  state.position = 42;
  state.keys = 7;
  state.is_open = false;
  state.spaces = {"0", std::string("with space\n\0", 12)};
  state.copies.push_back({"0", {}});
  state.copies.push_back({std::string("with space\n\0", 12), {.min = "(\xff\n", .max = "[z"}});
  return state;
}

TEST(MoveStateTest, IsReadAsItWasSaved) {
  const testing::TempDir dir;
  const std::string path = dir.File("state");
  const MoveState saved = SomeState();
  ASSERT_EQ(saved.Save(path), absl::OkStatus());
  const absl::StatusOr<MoveState> read = MoveState::Load(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->route, saved.route);
  EXPECT_EQ(read->feed, saved.feed);
  EXPECT_EQ(read->history_id, saved.history_id);
  EXPECT_EQ(read->position, saved.position);
  EXPECT_EQ(read->keys, saved.keys);
  EXPECT_EQ(read->is_open, saved.is_open);
  EXPECT_EQ(read->spaces, saved.spaces);
  ASSERT_EQ(read->copies.size(), saved.copies.size());
  for (size_t i = 0; i < saved.copies.size(); ++i) {
    EXPECT_EQ(read->copies[i].space, saved.copies[i].space);
    EXPECT_EQ(read->copies[i].bounds.min, saved.copies[i].bounds.min);
    EXPECT_EQ(read->copies[i].bounds.max, saved.copies[i].bounds.max);
  }
}

TEST(MoveStateTest, AFileThatIsMissingIsNoState) {
  const testing::TempDir dir;
  EXPECT_TRUE(absl::IsNotFound(MoveState::Load(dir.File("state")).status()));
}

TEST(MoveStateTest, WhatIsCutOrForeignIsNoState) {
  const testing::TempDir dir;
  const std::string path = dir.File("state");
  ASSERT_EQ(SomeState().Save(path), absl::OkStatus());
  const std::string whole = testing::ReadFile(path);
  // The line end behind the last line may be missing.
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    EXPECT_TRUE(absl::IsDataLoss(MoveState::Load(path).status())) << size;
  }
  std::ofstream(path, std::ios::trunc) << "varve-import 1\nsize 1\nend\n";
  EXPECT_TRUE(absl::IsDataLoss(MoveState::Load(path).status()));
}

}  // namespace
}  // namespace varve
