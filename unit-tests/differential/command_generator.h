// Random commands for the differential test: mostly sensible ones on few keys, so that they meet,
// and among them whatever a server may stumble over: empty and binary arguments, numbers at and
// beyond their limits, options in odd orders and numbers, missing and surplus arguments, upper and
// lower case. The same seed gives the same commands.
//
// Thread-safety: a generator belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace varve::differential {

using CommandLine = std::vector<std::string>;

class CommandGenerator {
 public:
  // Only commands among `known` (lower case) are made, and some that no server knows.
  CommandGenerator(uint64_t seed, const std::set<std::string>& known);

  CommandLine Next();

  // Every key that a command may touch on purpose. A spoiled command can touch others.
  static const std::vector<std::string>& Keys();
  // And the databases, from 0 on.
  static constexpr uint64_t kDatabases = 4;

 private:
  struct Kind {
    const char* name;
    int weight;
    std::function<void(CommandLine*)> arguments;
  };

  void AddStrings();
  void AddNumbers();
  void AddKeys();
  void AddBits();
  void AddOthers();
  void AddTransactions();
  void AddExpiry();
  void AddConnection();
  void Add(const char* name, int weight, std::function<void(CommandLine*)> arguments);

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t chances) { return Below(chances) == 0; }
  std::string Key();
  std::string Value();
  std::string Bytes(size_t most);
  std::string Integer();
  std::string Index();  // into a value
  std::string Database();
  std::string Float();
  std::string BitOffset();
  std::string FieldType();
  std::string Pattern();
  std::string Pick(std::initializer_list<const char*> words);
  std::string Word(std::string word);  // in a random mixture of cases
  // Each of the words with one chance in two, in random order.
  void Options(CommandLine* line, std::vector<std::string> words);
  void FieldOperations(CommandLine* line, bool writes);
  void AddTime(CommandLine* line);  // EX, PX, EXAT or PXAT
  // Whether a key may expire by it while the test runs, and so at one server before the other.
  static bool MayExpireSoon(const CommandLine& line);
  void Spoil(CommandLine* line);

  std::mt19937_64 random_;
  const std::set<std::string>& known_;
  std::vector<Kind> kinds_;
  int weights_ = 0;
  int until_exec_ = -1;          // commands, after a MULTI; negative: there was none
  uint64_t compared_times_ = 0;  // times given to EXPIRE with GT or LT
};

}  // namespace varve::differential
