#include "client/bundle/redactor.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kHashBytes = 8;
constexpr size_t kShortestSought = 4;  // shorter ones are found in any text

// The size of the word at the front of `text`, which ends with a space or a line.
size_t SizeOfWord(std::string_view text) {
  return std::min(text.find_first_of(" \r\n"), text.size());
}

// The size of a label's value at the front of `text`, which ends with a quote. A backslash escapes
// the next character.
size_t SizeOfLabel(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && text[size] != '"') size += text[size] == '\\' ? 2 : 1;
  return std::min(size, text.size());
}

// Replaces the values that stand behind `opening`, whose sizes `size_of` tells, by what `replace`
// makes of them.
template <typename Replace>
std::string ReplaceBehind(std::string_view text, std::string_view opening,
                          size_t (*size_of)(std::string_view), const Replace& replace) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(opening); at != std::string_view::npos;
       at = text.find(opening, done)) {
    const size_t begin = at + opening.size();
    const std::string_view value = text.substr(begin, size_of(text.substr(begin)));
    result += text.substr(done, begin - done);
    result += replace(value);
    done = begin + value.size();
  }
  return result += text.substr(done);
}

bool HoldsPassword(std::string_view setting) {
  return setting.find("pass") != std::string_view::npos && !setting.ends_with("-file");
}

}  // namespace

absl::StatusOr<Redactor> Redactor::Create() {
  std::string key(kKeyBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1)
    return absl::UnavailableError("the system gives no random bytes, so nothing can be redacted");
  return Redactor(std::move(key));
}

std::string Redactor::Hash(std::string_view secret) {
  if (secret.empty()) return "";
  known_.emplace(secret);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data(), &size);
  return "#" + absl::BytesToHexString(
                   absl::string_view(reinterpret_cast<const char*>(digest.data()), kHashBytes));
}

std::string Redactor::Clean(std::string_view text) {
  std::string clean(text);
  for (const std::string& secret : known_) {
    if (secret.size() < kShortestSought) continue;
    const std::string hash = Hash(secret);
    for (size_t at = clean.find(secret); at != std::string::npos;
         at = clean.find(secret, at + hash.size())) {
      clean.replace(at, secret.size(), hash);
    }
  }
  return clean;
}

void Redactor::RedactSlowLog(const Reply& commands, Reply* entries) {
  const auto is_command = [&commands](std::string_view word) {
    const std::string name = LowerCase(word);
    return std::any_of(commands.elements.begin(), commands.elements.end(),
                       [&name](const Reply& command) { return command.text == name; });
  };
  for (Reply& entry : entries->elements) {
    if (entry.elements.size() < 6) continue;
    std::vector<Reply>& words = entry.elements[3].elements;
    for (size_t i = 0; i < words.size(); ++i) {
      if (i > 0 || !is_command(words[i].text)) words[i].text = Hash(words[i].text);
    }
    entry.elements[5].text = Hash(entry.elements[5].text);
  }
}

void Redactor::RedactSettings(Reply* settings) {
  for (size_t i = 0; i + 1 < settings->elements.size(); i += 2) {
    const std::string& name = settings->elements[i].text;
    std::string& value = settings->elements[i + 1].text;
    if (name == "metrics-prefixes") value = Hash(value);
    if (HoldsPassword(name) && !value.empty()) value = "(removed)";
  }
}

std::string Redactor::RedactClients(std::string_view list) {
  const auto hash = [this](std::string_view name) {
    return name == "default" ? std::string(name) : Hash(name);
  };
  return ReplaceBehind(ReplaceBehind(list, " name=", SizeOfWord, hash), " user=", SizeOfWord, hash);
}

std::string Redactor::RedactMetrics(std::string_view page) {
  return ReplaceBehind(page, "{prefix=\"", SizeOfLabel,
                       [this](std::string_view prefix) { return Hash(prefix); });
}

}  // namespace varve
