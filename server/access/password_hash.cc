#include "server/access/password_hash.h"

#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

std::string Hexadecimal(const unsigned char* bytes, size_t size) {
  std::string text;
  text.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

}  // namespace

std::string PasswordHash(std::string_view password) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), digest);
  return Hexadecimal(digest, sizeof(digest));
}

bool IsPasswordHash(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool HasPasswordHash(const std::vector<std::string>& hashes, std::string_view hash) {
  bool found = false;
  for (const std::string& known : hashes) {
    VARVE_ASSERT(known.size() == 2 * SHA256_DIGEST_LENGTH);
    size_t different = known.size() ^ hash.size();
    for (size_t i = 0; i < known.size() && i < hash.size(); ++i)
      different |= static_cast<unsigned char>(known[i] ^ hash[i]);
    found = (different == 0) | found;
  }
  return found;
}

std::string RandomHex(size_t bits) {
  const size_t digits = (bits + 3) / 4;
  std::vector<unsigned char> bytes((digits + 1) / 2);
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got <= 0) return "";
    filled += static_cast<size_t>(got);
  }
  std::string text = Hexadecimal(bytes.data(), bytes.size());
  text.resize(digits);
  return text;
}

}  // namespace varve
