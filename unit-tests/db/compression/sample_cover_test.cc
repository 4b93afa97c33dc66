// A sample cover holds what many samples share, and nothing that fewer than three of them do.
#include "db/compression/sample_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace varve {
namespace {

void Add(const std::string& sample, SampleText* samples) {
  samples->bytes += sample;
  samples->sizes.push_back(sample.size());
}

std::string NextBytes(size_t size, std::mt19937_64* random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// How many samples have `window` in them.
uint32_t SamplesWith(std::string_view window, const SampleText& samples) {
  uint32_t count = 0;
  std::string_view rest = samples.bytes;
  for (const size_t size : samples.sizes) {
    count += rest.substr(0, size).find(window) != std::string_view::npos ? 1 : 0;
    rest.remove_prefix(size);
  }
  return count;
}

TEST(SampleCoverTest, EachByteIsInAWindowThatThreeSamplesShare) {
  std::mt19937_64 random(1);
  SampleText samples;
  for (int i = 0; i < 400; ++i) {
    Add(fmt::format(
            "{{\"name\":\"{:x}\",\"group\":\"group number {}\",\"pair\":\"the pair {:04}\"}}",
            random(), i % 40, i / 2),
        &samples);
  }
  const std::string cover = CoverOf(samples, 4096);
  ASSERT_GT(cover.size(), 500u);
  EXPECT_LE(cover.size(), 4096u);
  EXPECT_NE(cover.find("\"group\":\"group number "), std::string::npos);
  size_t shared_up_to = 0;
  for (size_t at = 0; at + kSharedWindow <= cover.size(); ++at) {
    if (SamplesWith(std::string_view(cover).substr(at, kSharedWindow), samples) < kFewestSharing)
      continue;
    ASSERT_LE(at, shared_up_to) << cover.substr(shared_up_to, at - shared_up_to);
    shared_up_to = at + kSharedWindow;
  }
  EXPECT_EQ(shared_up_to, cover.size());
}

// Returns which part of the windows of `text` is in `cover`.
double PartIn(const std::string& cover, std::string_view text) {
  size_t found = 0;
  const size_t windows = text.size() - kSharedWindow + 1;
  for (size_t at = 0; at < windows; ++at)
    found += cover.find(text.substr(at, kSharedWindow)) != std::string::npos ? 1 : 0;
  return static_cast<double>(found) / static_cast<double>(windows);
}

TEST(SampleCoverTest, WhatMostSamplesShareComesFirstIntoIt) {
  std::mt19937_64 random(2);
  const std::string usual = NextBytes(120, &random), rare = NextBytes(120, &random);
  SampleText samples;
  for (int i = 0; i < 300; ++i) {
    const std::string& common = i % 30 == 29 ? rare : usual;
    std::string sample = NextBytes(40, &random);
    sample += common;
    sample += NextBytes(40, &random);
    Add(sample, &samples);
  }
  const std::string small = CoverOf(samples, 200);
  EXPECT_GT(PartIn(small, usual), 0.5);
  EXPECT_EQ(PartIn(small, rare), 0);
  EXPECT_GT(PartIn(CoverOf(samples, 2000), rare), 0.5);
}

TEST(SampleCoverTest, IsEmptyWhereSamplesShareNothing) {
  std::mt19937_64 random(3);
  SampleText unique, shorter, twice;
  for (int i = 0; i < 200; ++i) {
    Add(NextBytes(200, &random), &unique);
    Add("1234567", &shorter);
  }
  for (int i = 0; i < 2; ++i) Add("what only two samples share", &twice);
  EXPECT_EQ(CoverOf(unique, 4096), "");
  EXPECT_EQ(CoverOf(shorter, 4096), "");
  EXPECT_EQ(CoverOf(twice, 4096), "");
  EXPECT_EQ(CoverOf({}, 4096), "");
  Add("what only two samples share", &twice);
  EXPECT_EQ(CoverOf(twice, 4096).substr(0, 27), "what only two samples share");
  EXPECT_EQ(CoverOf(twice, kSharedWindow - 1), "");
  EXPECT_EQ(CoverOf(twice, 0), "");
}

TEST(SampleCoverTest, CutsOutWhatTooFewSamplesShare) {
  SampleText samples;
  for (int i = 0; i < 100; ++i)
    Add(std::string("the beginning, ") + static_cast<char>(i) + ", and the end", &samples);
  EXPECT_EQ(SharedPartOf("the beginning, #, and the end", samples), "the beginning, , and the end");
  EXPECT_EQ(SharedPartOf("nothing of this", samples), "");
  EXPECT_EQ(SharedPartOf("", samples), "");
}

}  // namespace
}  // namespace varve
