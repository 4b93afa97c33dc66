// Thread setup tells the kernel a thread's name, as tools show it, and how urgent the thread is.
//
// Thread-safety: the functions keep no state; each concerns the thread that calls it.
#pragma once

#include <string>

namespace varve {

// Names the calling thread; the kernel keeps 15 bytes.
void NameThread(const std::string& name);

// Makes the calling thread a background thread: where processors are short, threads that answer
// requests come first, and it never interrupts one. It still gets its share (about a third of
// theirs), so that the work they cause gets done. Its nice value is 5 above that of the process.
void YieldToForeground();

// Makes the calling background thread work only in the time that every other thread leaves
// (SCHED_IDLE): it gives its processor up within microseconds, not after a slice of milliseconds,
// but may get none at all. YieldToForeground() takes that back. Returns false if the kernel would
// not let the thread come back, which takes CAP_SYS_NICE or a limit of nice values (RLIMIT_NICE) of
// at least 15 in a process with a nice value of 0; then nothing changes, but for a nice value that
// may be one higher.
// Requires: the thread has called YieldToForeground().
[[nodiscard]] bool YieldToEveryone();

}  // namespace varve
