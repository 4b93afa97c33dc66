#include "unit-tests/differential/command_generator.h"

#include <algorithm>

#include "server/commands/command_table.h"

namespace varve::differential {

using namespace std::string_literals;

// Numbers from 100,000 to 2^32 - 1 are never made: as an offset of a write they would ask for
// hundreds of megabytes.

const std::vector<std::string>& CommandGenerator::Keys() {
  static const std::vector<std::string> keys = {
      "a",     "b",     "c",    "d",     "e", "n1",          "n2",
      "key:1", "key:2", "bits", "bits2", "",  "\0\xff\r\n"s, std::string(300, 'K'),
      "h*",    "[x]"};
  return keys;
}

CommandGenerator::CommandGenerator(uint64_t seed, const std::set<std::string>& known)
    : random_(seed), known_(known) {
  AddStrings();
  AddNumbers();
  AddKeys();
  AddBits();
  AddOthers();
  AddTransactions();
  AddExpiry();
  AddConnection();
}

void CommandGenerator::Add(const char* name, int weight,
                           std::function<void(CommandLine*)> arguments) {
  if (!known_.contains(name)) return;
  kinds_.push_back({name, weight, std::move(arguments)});
  weights_ += weight;
}

CommandLine CommandGenerator::Next() {
  if (until_exec_ >= 0 && until_exec_-- == 0) return {Word(OneIn(6) ? "discard" : "exec")};
  int at = static_cast<int>(Below(static_cast<uint64_t>(weights_)));
  size_t i = 0;
  while (at >= kinds_[i].weight) at -= kinds_[i++].weight;
  CommandLine line = {Word(kinds_[i].name)};
  kinds_[i].arguments(&line);
  if (line.size() == 1 && until_exec_ < 0 && std::string_view(kinds_[i].name) == "multi") {
    until_exec_ = static_cast<int>(Below(10));
  }
  // A wrong password is answered late.
  if (OneIn(25) && !EqualsIgnoreCase(line[0], "auth") && !EqualsIgnoreCase(line[0], "hello")) {
    CommandLine spoiled = line;
    Spoil(&spoiled);
    if (!MayExpireSoon(spoiled)) line = std::move(spoiled);
  }
  return line;
}

void CommandGenerator::Spoil(CommandLine* line) {
  const size_t at = line->size() > 1 ? 1 + Below(line->size() - 1) : 0;
  switch (Below(6)) {
    case 0:
      if (at > 0) line->erase(line->begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      line->push_back((*line)[at]);
      break;
    case 2:
      if (at > 0) std::swap((*line)[at], (*line)[1 + Below(line->size() - 1)]);
      break;
    case 3:
      line->push_back(Value());
      break;
    case 4:
      if (at > 0) (*line)[at] = Value();
      break;
    default:
      line->resize(1 + Below(line->size()));
  }
}

std::string CommandGenerator::Pick(std::initializer_list<const char*> words) {
  return words.begin()[Below(words.size())];
}

std::string CommandGenerator::Word(std::string word) {
  if (OneIn(2)) return word;
  const bool all = OneIn(2);
  for (char& c : word) {
    if ((all || OneIn(2)) && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return word;
}

std::string CommandGenerator::Key() { return Keys()[Below(Keys().size())]; }

std::string CommandGenerator::Bytes(size_t most) {
  std::string bytes(Below(most + 1), '\0');
  const bool few = OneIn(2);  // letters that meet again
  for (char& c : bytes) c = few ? static_cast<char>('a' + Below(4)) : static_cast<char>(random_());
  return bytes;
}

std::string CommandGenerator::Value() {
  switch (Below(12)) {
    case 0:
      return "";
    case 1:
    case 2:
      return Integer();
    case 3:
      return Float();
    case 4:
      return Pick({"hello world", "true", "nil", "OK", "%s%n", "\r\n", "-1", "nan", "*", "$-1"});
    case 5:
      return OneIn(10) ? Bytes(20000) : Bytes(200);
    case 6:
      return std::string(Below(70), static_cast<char>(OneIn(2) ? 0xFF : 0));
    default:
      return Bytes(20);
  }
}

std::string CommandGenerator::Integer() {
  if (!OneIn(4)) return std::to_string(static_cast<int64_t>(Below(201)) - 100);
  return Pick({"9223372036854775807",
               "-9223372036854775808",
               "9223372036854775808",
               "-9223372036854775809",
               "9223372036854775700",
               "-9223372036854775700",
               "4294967296",
               "4611686018427387904",
               "99999",
               "abc",
               "",
               " 1",
               "1 ",
               "+1",
               "-0",
               "00",
               "01",
               "1.0",
               "1e3",
               "0x10",
               "-",
               "123456789012345678901234567890",
               "-123456789012345678901234567890"});
}

std::string CommandGenerator::Index() {
  return OneIn(8) ? Integer() : std::to_string(static_cast<int64_t>(Below(81)) - 40);
}

std::string CommandGenerator::Database() {
  if (OneIn(8)) return Pick({"15", "16", "-1", "abc", "99999", "", "1 ", "+1", "01", "2147483648"});
  return std::to_string(Below(kDatabases));
}

std::string CommandGenerator::Float() {
  if (OneIn(2))
    return std::to_string(static_cast<double>(static_cast<int64_t>(Below(20001)) - 10000) / 64);
  if (OneIn(2)) return Integer();
  return Pick({"0.1",
               "3.0e3",
               "1e-5",
               "1.5e+10",
               "1e17",
               "-1e20",
               "1e400",
               "inf",
               "-inf",
               "+inf",
               "Infinity",
               "nan",
               ".5",
               "5.",
               "1e",
               "- 1",
               "1.2.3",
               " 1.5",
               "1.5 ",
               "0x1p3",
               "1,5",
               "-0.0",
               "1e-400",
               "0.000000000000000001",
               "123456789.123456789",
               "99999999999999999.5",
               "1e4931"});
}

std::string CommandGenerator::BitOffset() {
  if (OneIn(12)) return Integer();
  if (OneIn(30)) return std::to_string(Below(99999));
  return std::to_string(Below(OneIn(3) ? 600 : 40));
}

std::string CommandGenerator::FieldType() {
  if (OneIn(25))
    return Pick({"u64", "i65", "u0", "i0", "U8", "I8", "8", "", "u", "i", "u08", "i-5", "u8 ", "x8",
                 "i99999"});
  const bool is_signed = OneIn(2);
  std::string type(1, is_signed ? 'i' : 'u');
  type += std::to_string(1 + Below(is_signed ? 64 : 63));
  return type;
}

std::string CommandGenerator::Pattern() {
  return Pick({"*", "?",  "key:*", "key:?", "[a-c]", "[^a]",  "h\\*", "*1",  "n[0-9]", "",
               "[", "\\", "a*b*c", "[x]",   "\\[x]", "[b-a]", "**",   "*K*", "??*",    "bits*"});
}

void CommandGenerator::Options(CommandLine* line, std::vector<std::string> words) {
  std::shuffle(words.begin(), words.end(), random_);
  for (std::string& word : words) {
    if (OneIn(2)) line->push_back(Word(std::move(word)));
  }
}

void CommandGenerator::AddStrings() {
  const auto key = [this](CommandLine* line) { line->push_back(Key()); };
  const auto key_value = [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Value());
  };
  const auto key_range = [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Index());
    line->push_back(Index());
  };
  const auto pairs = [this](CommandLine* line) {
    for (uint64_t i = 1 + Below(4); i > 0; --i) {
      line->push_back(Key());
      line->push_back(Value());
    }
  };
  Add("get", 60, key);
  Add("set", 60, key_value);
  Add("set", 30, [=, this](CommandLine* line) {
    key_value(line);
    Options(line, {"nx", "xx", "get"});
    if (OneIn(10)) line->push_back(Pick({"foo", "", "n x", "keep", "getx"}));
  });
  Add("set", 8, [=, this](CommandLine* line) {
    key_value(line);
    line->push_back(Word(Pick({"nx", "xx", "get"})));
  });
  Add("getset", 12, key_value);
  Add("getdel", 8, key);
  Add("setnx", 10, key_value);
  Add("mset", 15, pairs);
  Add("msetnx", 10, pairs);
  Add("mget", 15, [this](CommandLine* line) {
    for (uint64_t i = 1 + Below(6); i > 0; --i) line->push_back(Key());
  });
  Add("append", 25, key_value);
  Add("strlen", 15, key);
  Add("getrange", 20, key_range);
  Add("substr", 8, key_range);
  Add("setrange", 25, [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(OneIn(8) ? Integer() : std::to_string(Below(60)));
    line->push_back(Value());
  });
  Add("lcs", 25, [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Key());
    if (OneIn(2)) line->push_back(Word(OneIn(3) ? "len" : "idx"));
    if (OneIn(3)) line->push_back(Word("withmatchlen"));
    if (OneIn(3)) {
      line->push_back(Word("minmatchlen"));
      line->push_back(OneIn(3) ? Integer() : std::to_string(Below(5)));
    }
    if (OneIn(12)) line->push_back(Word(Pick({"len", "idx", "minmatchlen", "foo"})));
  });
}

void CommandGenerator::AddNumbers() {
  const auto number_key = [this] { return OneIn(3) ? Key() : Pick({"n1", "n2"}); };
  Add("set", 15, [=, this](CommandLine* line) {
    line->push_back(number_key());
    line->push_back(OneIn(3) ? Float() : Integer());
  });
  for (const char* name : {"incr", "decr"}) {
    Add(name, 15, [=](CommandLine* line) { line->push_back(number_key()); });
  }
  for (const char* name : {"incrby", "decrby"}) {
    Add(name, 15, [=, this](CommandLine* line) {
      line->push_back(number_key());
      line->push_back(Integer());
    });
  }
  Add("incrbyfloat", 25, [=, this](CommandLine* line) {
    line->push_back(number_key());
    line->push_back(Float());
  });
}

void CommandGenerator::AddKeys() {
  const auto keys = [this](CommandLine* line) {
    for (uint64_t i = 1 + Below(3); i > 0; --i) line->push_back(Key());
  };
  const auto two_keys = [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Key());
  };
  Add("del", 10, keys);
  Add("unlink", 6, keys);
  Add("exists", 10, keys);
  Add("touch", 6, keys);
  Add("type", 6, [this](CommandLine* line) { line->push_back(Key()); });
  Add("rename", 12, two_keys);
  Add("renamenx", 12, two_keys);
  Add("copy", 12, [=, this](CommandLine* line) {
    two_keys(line);
    if (OneIn(2)) line->push_back(Word("replace"));
    if (known_.contains("select") && OneIn(3)) {
      line->push_back(Word("db"));
      if (!OneIn(8)) line->push_back(Database());
    }
  });
  Add("keys", 8, [this](CommandLine* line) { line->push_back(Pattern()); });
  Add("randomkey", 4, [](CommandLine*) {});
  Add("dbsize", 4, [](CommandLine*) {});
  Add("info", 2, [this](CommandLine* line) { line->push_back(Word("keyspace")); });
  Add("flushdb", 1, [this](CommandLine* line) { Options(line, {"async", "sync"}); });
  Add("flushall", 1, [this](CommandLine* line) { Options(line, {"async", "sync"}); });
  // Any other cursor than 0 means something else to each server.
  Add("scan", 15, [this](CommandLine* line) {
    line->push_back(OneIn(15) ? Pick({"abc", "-1", "", "1.5", "99999999999999999999999"}) : "0"s);
    std::vector<std::string> words = {"match", "count", "type"};
    std::shuffle(words.begin(), words.end(), random_);
    line->push_back(Word("count"));
    line->push_back("1000");
    for (const std::string& word : words) {
      if (!OneIn(3)) continue;
      line->push_back(Word(word));
      if (OneIn(15)) continue;
      if (word == "match") line->push_back(Pattern());
      if (word == "type") line->push_back(Word(Pick({"string", "list", "hash", "foo", ""})));
      if (word == "count")
        line->push_back(OneIn(3) ? Pick({"0", "-1", "abc", "", "99999999999999999999"}) : "500"s);
    }
  });
  Add("object", 10, [this](CommandLine* line) {
    line->push_back(Word(Pick({"encoding", "encoding", "encoding", "refcount", "freq", "foo"})));
    line->push_back(Key());
  });
}

void CommandGenerator::FieldOperations(CommandLine* line, bool writes) {
  for (uint64_t i = Below(5); i > 0; --i) {
    const uint64_t kind = writes ? Below(4) : 0;
    if (kind == 3 || OneIn(20)) {
      line->push_back(Word("overflow"));
      line->push_back(OneIn(15) ? "foo"s : Word(Pick({"wrap", "sat", "fail"})));
      continue;
    }
    line->push_back(Word(kind == 0 ? "get" : kind == 1 ? "set" : "incrby"));
    line->push_back(FieldType());
    const bool in_fields = OneIn(3);
    std::string offset = BitOffset();
    if (in_fields) offset.insert(offset.begin(), '#');
    line->push_back(std::move(offset));
    if (kind != 0) line->push_back(Integer());
  }
  if (OneIn(20)) line->push_back(Word(Pick({"get", "set", "incrby", "overflow", "foo"})));
}

void CommandGenerator::AddBits() {
  const auto bit_key = [this] { return OneIn(2) ? Key() : Pick({"bits", "bits2"}); };
  Add("setbit", 30, [=, this](CommandLine* line) {
    line->push_back(bit_key());
    line->push_back(BitOffset());
    line->push_back(OneIn(12) ? Integer() : std::to_string(Below(2)));
  });
  Add("getbit", 20, [=, this](CommandLine* line) {
    line->push_back(bit_key());
    line->push_back(OneIn(15) ? "4294967295"s : BitOffset());
  });
  const auto range = [this](CommandLine* line) {
    if (OneIn(3)) return;
    line->push_back(Index());
    if (OneIn(6)) return;
    line->push_back(Index());
    if (OneIn(2)) line->push_back(OneIn(10) ? Value() : Word(Pick({"bit", "byte"})));
  };
  Add("bitcount", 25, [=](CommandLine* line) {
    line->push_back(bit_key());
    range(line);
  });
  Add("bitpos", 30, [=, this](CommandLine* line) {
    line->push_back(bit_key());
    line->push_back(OneIn(15) ? Integer() : std::to_string(Below(2)));
    range(line);
  });
  Add("bitop", 25, [=, this](CommandLine* line) {
    line->push_back(Word(OneIn(20) ? "nand" : Pick({"and", "or", "xor", "not"})));
    line->push_back(bit_key());
    for (uint64_t i = OneIn(2) ? 1 : 1 + Below(4); i > 0; --i) line->push_back(bit_key());
  });
  Add("bitfield", 40, [=, this](CommandLine* line) {
    line->push_back(bit_key());
    FieldOperations(line, true);
  });
  Add("bitfield_ro", 12, [=, this](CommandLine* line) {
    line->push_back(bit_key());
    FieldOperations(line, OneIn(10));
  });
}

}  // namespace varve::differential
