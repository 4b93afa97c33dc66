#include "client/console/code_points.h"

#include <algorithm>
#include <iterator>

namespace varve {
namespace {

struct Interval {
  char32_t first;
  char32_t last;
};

// Where single wide characters are strewn among narrow ones, the interval spans them all: text then
// takes less room than was left for it, never more.
constexpr Interval kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23F3},
    {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},
    {0x26C4, 0x26C5},   {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},
    {0x26F2, 0x26F5},   {0x26FA, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274E},   {0x2753, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF},
    {0x1F18E, 0x1F19A}, {0x1F1E6, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7F0},
    {0x1F90C, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

constexpr Interval kMarks[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x20D0, 0x20FF}, {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

// Not those that join or part letters (U+200C, U+200D), which are part of ordinary text.
constexpr Interval kHidden[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},
                                {0x061C, 0x061C}, {0x180E, 0x180E}, {0x200B, 0x200B},
                                {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                                {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

template <size_t kCount>
bool IsIn(const Interval (&intervals)[kCount], char32_t code_point) {
  const auto* const after = std::upper_bound(
      std::begin(intervals), std::end(intervals), code_point,
      [](char32_t point, const Interval& interval) { return point < interval.first; });
  return after != std::begin(intervals) && code_point <= std::prev(after)->last;
}

}  // namespace

size_t Utf8Length(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto follows = [&](size_t i) { return i < bytes.size() && (at(i) & 0xC0) == 0x80; };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && at(1) < 0xA0) return 0;  // longer than it need be
    if (first == 0xED && at(1) > 0x9F) return 0;  // half of a surrogate pair
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) return 0;
    return 4;
  }
  return 0;
}

char32_t DecodeUtf8(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first;
  char32_t code_point = first & (0xFFu >> (sequence.size() + 1));
  for (const char c : sequence.substr(1))
    code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code_point;
}

size_t ColumnsOf(char32_t code_point) {
  if (code_point < 0x300) return 1;
  return IsIn(kMarks, code_point) ? 0 : IsIn(kWide, code_point) ? 2 : 1;
}

bool IsHidden(char32_t code_point) { return IsIn(kHidden, code_point); }

}  // namespace varve
