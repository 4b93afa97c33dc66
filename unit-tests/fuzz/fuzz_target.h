// What every fuzz target says of itself, and what inputs are taken apart with.
//
// A target is one function that takes any bytes and ends the process when a promise is broken.
// libfuzzer_main.cc drives it with inputs that it makes up (`make fuzz`); corpus_test.cc runs it
// over its seeds and the files of corpus/<name> (`make test`). In the inputs of formats with
// checksums, a target writes the right checksum over the bytes where the format has it, so that
// mutations get past it; each target says how an input asks for a wrong one.
//
// Thread-safety: an Input belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace varve::fuzz {

struct Target {
  std::string name;
  void (*run)(std::string_view input);
  std::vector<std::string> (*seeds)();  // inputs that the code makes by itself
};

// All targets that are linked in.
const std::vector<Target>& Targets();

// Runs the target; if a promise is broken, the input is shown beside it.
void RunTarget(const Target& target, std::string_view input);

// One at namespace scope announces a target.
struct Announced {
  explicit Announced(Target target);
};

// Takes an input apart from its front; what is missing at the end reads as zero or empty.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte();
  uint16_t Short();  // least significant byte first
  std::string_view Take(size_t bytes);
  // A length (Short) and so many bytes.
  std::string_view Piece() { return Take(Short()); }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

// What Input::Piece reads back.
void AppendPiece(std::string_view bytes, std::string* input);

// A copy that ends where its allocation does, so that reading beyond it is noticed.
class ExactCopy {
 public:
  explicit ExactCopy(std::string_view bytes);
  char* data() { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::vector<char> bytes_;
};

[[noreturn]] void Broken(const char* promise, const char* file, int line);

}  // namespace varve::fuzz

// Ends the process, with a word why, unless `promise` holds; in every kind of build.
#define VARVE_FUZZ_REQUIRE(promise) \
  (static_cast<bool>(promise) ? void(0) : ::varve::fuzz::Broken(#promise, __FILE__, __LINE__))
