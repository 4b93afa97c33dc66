// Passwords as the table of users keeps them: SHA-256 in lower-case hexadecimal.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

std::string PasswordHash(std::string_view password);

// Returns whether the text has the form of a hash: 64 lower-case hexadecimal digits.
bool IsPasswordHash(std::string_view text);

// Returns whether `hash` is one of `hashes`. The time that this takes depends on their number
// alone: each byte of each is looked at.
bool HasPasswordHash(const std::vector<std::string>& hashes, std::string_view hash);

// Returns so many random bits in hexadecimal, in groups of four bits. Empty: the kernel gives none.
std::string RandomHex(size_t bits);

}  // namespace varve
