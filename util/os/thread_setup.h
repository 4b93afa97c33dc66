// What a thread says of itself to the kernel: its name in tools, and how urgent it is.
// Stateless, thread-safe.
#pragma once

#include <string>

namespace varve {

// Names the calling thread; the kernel keeps 15 bytes.
void NameThread(const std::string& name);

// The calling thread works in the background: where processors are short, threads that answer
// requests come first, and it never interrupts one. It still gets its share (about a third of
// theirs), so that what they cause is worked off.
void YieldToForeground();

// A background thread from now on works only in the time that every other thread leaves
// (SCHED_IDLE): it gives its processor up within microseconds, not after a turn of milliseconds,
// but may get none at all. YieldToForeground() takes that back. False: the kernel would not let it
// come back, so all stays as it is, but for a nice value one higher; coming back takes CAP_SYS_NICE
// or a limit of nice values (RLIMIT_NICE) of at least 15.
[[nodiscard]] bool YieldToEveryone();

}  // namespace varve
