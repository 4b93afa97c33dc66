#include "util/redis_format/crc64.h"

#include <array>

#include "util/base/coding.h"

namespace varve {
namespace {

constexpr uint64_t kReflectedPolynomial = 0x95AC9329AC4BC9B5u;

using Tables = std::array<std::array<uint64_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t table = 1; table < 8; ++table) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[table - 1][byte];
      tables[table][byte] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

uint64_t Crc64(uint64_t crc, std::string_view bytes) {
  while (bytes.size() >= 8) {
    crc ^= DecodeFixed64(bytes.data());
    uint64_t next = 0;
    for (size_t i = 0; i < 8; ++i) next ^= kTables[7 - i][crc >> (8 * i) & 0xFF];
    crc = next;
    bytes.remove_prefix(8);
  }
  for (const char c : bytes)
    crc = kTables[0][(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return crc;
}

}  // namespace varve
