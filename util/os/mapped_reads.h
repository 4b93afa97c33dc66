// Mapped reads are small reads of files without a system call: a copy out of a mapping of the file.
//
// Data that the kernel holds is copied at the speed of memory. A page that can't be read would end
// the process with SIGBUS, so a guard stands around each copy: a handler of that signal, which the
// first file system of this kind installs for the whole process. A guarded copy that fails is done
// again by a call, whose error says what is wrong. A SIGBUS of any other cause goes to the handler
// that was there before.
//
// A mapped read of data that the kernel does not hold costs a page fault for each page, where a
// call costs one read of the disk. So each thread counts the faults of its mapped reads that went
// to the disk, and after one it reads by call for a while.
//
// Mapped pages are the kernel's and can be taken back at any time, but they count as resident.
// Where they exceed a budget, all of them are given back; the kernel still holds their content.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "util/os/file_system.h"

namespace varve {

// Copies `size` bytes out of a mapping. Returns false if some of them can't be read; then what is
// in `to` is undefined. Requires: InstallMappedReadGuard() was called.
[[nodiscard]] bool GuardedCopy(const char* from, size_t size, char* to);

// Installs the guard, once for the process.
void InstallMappedReadGuard();

// Returns a file system like PosixFileSystem(), whose files that are opened for reading have mapped
// reads. It lives as long as the process. `budget` is how many bytes of mapped pages may be
// resident, give or take what each thread maps in 64 reads; the largest one that any caller gave
// counts. Installs the guard.
FileSystem* MappedFileSystem(uint64_t budget);

}  // namespace varve
