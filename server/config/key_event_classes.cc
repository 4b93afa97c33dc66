#include "server/config/key_event_classes.h"

namespace varve {
namespace {

struct Letter {
  char letter;
  uint32_t bits;
};
// Without the channels and A. In the order in which Redis shows them.
constexpr Letter kAll[] = {{'g', kGenericEvent}, {'$', kStringEvent},  {'l', 1u << 4},
                           {'s', 1u << 5},       {'h', 1u << 6},       {'z', 1u << 7},
                           {'x', kExpiredEvent}, {'e', kEvictedEvent}, {'t', 1u << 10},
                           {'d', 1u << 11}};
constexpr Letter kOthers[] = {
    {'K', kKeyspaceChannels}, {'E', kKeyeventChannels}, {'m', kMissEvent}, {'n', kNewEvent}};

constexpr uint32_t BitsOfA() {
  uint32_t bits = 0;
  for (const Letter& letter : kAll) bits |= letter.bits;
  return bits;
}
constexpr uint32_t kA = BitsOfA();

}  // namespace

std::optional<uint32_t> ParseKeyEvents(std::string_view letters) {
  uint32_t classes = 0;
  for (const char c : letters) {
    uint32_t bits = c == 'A' ? kA : 0;
    for (const Letter& letter : kAll) bits |= letter.letter == c ? letter.bits : 0;
    for (const Letter& letter : kOthers) bits |= letter.letter == c ? letter.bits : 0;
    if (bits == 0) return std::nullopt;
    classes |= bits;
  }
  return classes;
}

std::string ShowKeyEvents(uint32_t classes) {
  std::string letters;
  if ((classes & kA) == kA) {
    letters = "A";
  } else {
    for (const Letter& letter : kAll) {
      if (classes & letter.bits) letters += letter.letter;
    }
  }
  for (const Letter& letter : kOthers) {
    if (classes & letter.bits) letters += letter.letter;
  }
  return letters;
}

}  // namespace varve
