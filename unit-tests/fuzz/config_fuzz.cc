// Configuration files: any text is read or refused with the line that is wrong, and a file that
// CONFIG REWRITE has changed holds the values it was given.
//
//   input = [ the file ][ optional: a zero byte, and another file, whose values the first one is
//   rewritten with ]
#include <string>
#include <string_view>
#include <vector>

#include "server/config/config_file.h"
#include "unit-tests/fuzz/fuzz_target.h"

namespace varve::fuzz {
namespace {

constexpr std::string_view kPath = "varve.toml";

bool Parse(std::string_view text, ServerConfig* config) {
  const ExactCopy copy(text);
  const absl::Status status = ParseConfigText(copy.view(), kPath, config);
  if (status.ok()) return true;
  VARVE_FUZZ_REQUIRE(absl::IsInvalidArgument(status));
  VARVE_FUZZ_REQUIRE(std::string_view(status.message().data(), status.message().size())
                         .starts_with("varve.toml:"));
  return false;
}

void Run(std::string_view input) {
  const size_t split = input.find('\0');
  const std::string_view text = input.substr(0, split);
  ServerConfig old;
  const bool readable = Parse(text, &old);
  ServerConfig wanted;
  if (split != std::string_view::npos && !Parse(input.substr(split + 1), &wanted)) return;

  const absl::StatusOr<std::string> rewritten = RewriteConfigText(text, kPath, wanted);
  VARVE_FUZZ_REQUIRE(rewritten.ok() == readable);
  if (!rewritten.ok()) return;
  ServerConfig again;
  VARVE_FUZZ_REQUIRE(Parse(*rewritten, &again));
  for (const Setting& setting : AllSettings()) {
    if (setting.secret && !wanted.password_file.empty()) continue;  // that file holds it
    VARVE_FUZZ_REQUIRE(WriteSetting(setting, again) == WriteSetting(setting, wanted));
  }
}

std::vector<std::string> Seeds() {
  const std::string zero(1, '\0');
  const std::string changed =
      "port = 6379\nbind = \"::1\"\nwrite-buffer-size = \"8MiB\"\nsync = \"everysec\"\n";
  return {"",
          ExampleConfig().substr(0, 3000),
          changed,
          "# port = 7777\n#sync = \"always\"\nmaxclients = 10 # ten\r\n" + zero + changed,
          changed + zero,
          "requirepass = \"\\u00e9\\\"\\\\\" # é\nport = 1 # \xc3\xa9\n" + zero +
              "requirepass = '''a\nb'''\nport = 2",
          "port = \"x\"\nno-such = 1\n[section]\na = 1\n",
          "a.b.c = {x = [1, 2.5, 1979-05-27T07:32:00Z, inf]}\n",
          "port = 1\nport = 2\n",
          "dir = \"\"\"multi\nline\"\"\"" + zero + "dir = \"other\"",
          "protected-mode = true\nunixsocketperm = \"0600\"\ntimeout = 0x10\n" + zero +
              "protected-mode = \"no\""};
}

const Announced kTarget({"config", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
