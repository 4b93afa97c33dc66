// What a thread says of itself to the kernel: its name in tools, and how urgent it is.
// Stateless, thread-safe.
#pragma once

#include <string>

namespace varve {

// Names the calling thread; the kernel keeps 15 bytes.
void NameThread(const std::string& name);

// The calling thread works in the background: where processors are short, threads that answer requests come first, and it
// never interrupts one. It still gets its share (about a third of theirs), so that what they cause is worked off.
void YieldToForeground();

}  // namespace varve
