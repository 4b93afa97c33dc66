// That the oracle finds what it looks for: each kind of damage done to a state that was fine.
#include "unit-tests/prove/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::prove {
namespace {

using ::testing::HasSubstr;

// Executes the requests of a writer that this test needs, as a server would.
void Execute(const std::vector<std::string>& request, Pairs* pairs) {
  const std::string& name = request[0];
  if (name == "SET") {
    const auto pair = pairs->find(request[1]);
    const bool holds = request.size() == 3 ||
                       (request[3] == "NX" ? pair == pairs->end() : pair->second == request[4]);
    if (holds) (*pairs)[request[1]] = request[2];
  } else if (name == "MSET") {
    for (size_t i = 1; i < request.size(); i += 2) (*pairs)[request[i]] = request[i + 1];
  } else if (name == "DEL") {
    for (size_t i = 1; i < request.size(); ++i) pairs->erase(request[i]);
  } else if (name == "DELRANGE") {
    pairs->erase(pairs->lower_bound(request[1].substr(1)),
                 pairs->lower_bound(request[2].substr(1)));
  } else if (name == "INCR") {
    std::string& count = (*pairs)[request[1]];
    count = std::to_string(count.empty() ? 1 : std::stoull(count) + 1);
  } else if (name == "RENAME") {
    (*pairs)[request[2]] = (*pairs)[request[1]];
    pairs->erase(request[1]);
  } else {
    FAIL() << name;
  }
}

class WriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    writer_.SendingAt(Writer::Clock::now());
    for (int i = 0; i < 2000; ++i) {
      Execute(writer_.Next(), &pairs_);
      states_.push_back(pairs_);
    }
  }

  Writer writer_{7, 42};
  Pairs pairs_;
  std::vector<Pairs> states_;  // after 1, 2, ... steps
};

TEST_F(WriterTest, TheStateAfterAnyNumberOfStepsThatIsAllowedFits) {
  for (const uint64_t steps : {1u, 2u, 500u, 1999u, 2000u}) {
    const Verdict verdict = writer_.Check(states_[steps - 1], steps);
    EXPECT_TRUE(verdict.good()) << verdict.complaints[0];
    EXPECT_GE(verdict.survived, steps);
    EXPECT_TRUE(writer_.Check(states_[steps - 1], 0).good());
  }
}

TEST_F(WriterTest, WhatIsOlderThanAcknowledgedIsLost) {
  int found = 0;
  for (size_t steps = 1000; steps < 1100; ++steps) {
    if (states_[steps - 1] == states_[steps]) continue;  // a request that changed nothing
    const Verdict verdict = writer_.Check(states_[steps - 1], steps + 1);
    EXPECT_GT(verdict.lost, 0u);
    EXPECT_THAT(verdict.complaints[0], HasSubstr("must have survived"));
    ++found;
  }
  EXPECT_GT(found, 50);
}

TEST_F(WriterTest, ADeletedKeyThatComesBackIsFound) {
  for (const auto& [key, value] : states_[999]) {
    if (pairs_.contains(key)) continue;
    Pairs resurrected = pairs_;
    resurrected[key] = value;
    const Verdict verdict = writer_.Check(resurrected, 2000);
    EXPECT_EQ(verdict.lost, 1u);
    EXPECT_THAT(verdict.complaints[0], HasSubstr("which is not what it had after"));
    return;
  }
  FAIL() << "no key was deleted";
}

TEST_F(WriterTest, HalfABatchIsTorn) {
  int found = 0;
  for (size_t steps = 1500; steps < 2000; ++steps) {
    Pairs changed;
    for (const auto& pair : states_[steps]) {
      const auto before = states_[steps - 1].find(pair.first);
      if (before == states_[steps - 1].end() || before->second != pair.second) changed.insert(pair);
    }
    if (changed.size() < 2) continue;
    Pairs half = states_[steps - 1];
    half[changed.begin()->first] = changed.begin()->second;
    const Verdict verdict = writer_.Check(half, steps);
    EXPECT_EQ(verdict.torn, 1u);
    EXPECT_EQ(verdict.lost, 0u);
    ++found;
  }
  EXPECT_GT(found, 10);
}

TEST_F(WriterTest, AnEarlierStepThatIsMissingUnderALaterOneIsFound) {
  Pairs overtaken = states_[1999];
  const auto changed = [&](size_t step) {
    for (const auto& pair : states_[step]) {
      const auto before = states_[step - 1].find(pair.first);
      if (before == states_[step - 1].end()) return pair.first;
    }
    return std::string();
  };
  for (size_t step = 1990; step < 1999; ++step) {
    const std::string key = changed(step);
    if (key.empty() || !overtaken.contains(key)) continue;
    overtaken.erase(key);
    EXPECT_FALSE(writer_.Check(overtaken, 1980).good());
    return;
  }
}

TEST_F(WriterTest, AWrongByteAndAStrangeKeyAreFound) {
  Pairs wrong = pairs_;
  wrong.rbegin()->second.back() ^= 1;
  EXPECT_THAT(writer_.Check(wrong, 2000).complaints[0], HasSubstr("that nobody wrote"));
  Pairs strange = pairs_;
  strange["w7:9999"] = "x";
  EXPECT_THAT(writer_.Check(strange, 2000).complaints[0], HasSubstr("keys that nobody wrote"));
}

TEST_F(WriterTest, RepliesAreHeldAgainstWhatTheyMustBe) {
  std::string complaint;
  Writer writer(1, 1);
  writer.Next();
  EXPECT_FALSE(writer.Acknowledge({.type = Reply::Type::kInteger, .integer = 99},
                                  Writer::Clock::now(), &complaint));
  EXPECT_THAT(complaint, HasSubstr("instead of"));
  EXPECT_TRUE(writer.Acknowledge({.type = Reply::Type::kError, .text = "MISCONF"},
                                 Writer::Clock::now(), &complaint));
  EXPECT_EQ(writer.acknowledged(), 0u);
  EXPECT_FALSE(writer.Acknowledge({.type = Reply::Type::kSimple, .text = "OK"},
                                  Writer::Clock::now(), &complaint));
  EXPECT_THAT(complaint, HasSubstr("behind the error"));
}

}  // namespace
}  // namespace varve::prove
