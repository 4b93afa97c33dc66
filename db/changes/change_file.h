// A change file holds retained changes: commits one behind the other, without the padding of log
// pages. The manifest names the change files, and how many bytes of each hold; the log has what
// comes behind them.
//
// `NNNNNN.chg`:
//
//   header, 24 bytes (db/format/file_header.h): magic "VARVECHG", format version 1
//   blocks, back to back (db/changes/change_block.h); each begins where the one before ended
//
// Thread-safety: all functions may be called on any thread; those for writing, by one thread at a
// time.
// Invariants: bytes that a reader was told of never change.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/changes/change_block.h"
#include "db/format/file_header.h"
#include "util/os/file_remover.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

inline constexpr size_t kChangeFileHeaderSize = kFileHeaderSize;

class ChangeFile {
 public:
  // Does not look at the disk. `remover` may be null.
  // Requires: the file system and the remover outlive the file.
  ChangeFile(FileSystem* file_system, const std::string& directory, uint64_t number,
             FileRemover* remover);
  // Removes the file from the disk if MarkObsolete() was called.
  ~ChangeFile();
  ChangeFile(const ChangeFile&) = delete;
  ChangeFile& operator=(const ChangeFile&) = delete;

  uint64_t number() const { return number_; }
  const std::string& path() const { return path_; }
  // Has the destructor remove the file.
  // Requires: the manifest on disk does not name it.
  void MarkObsolete() { obsolete_.store(true); }

  // --- Reading ---
  // Returns the offset of the block that covers the version behind `position`, among the blocks
  // before `end`. Returns DataLoss if the headers of blocks on the way are damaged.
  // Requires: there is such a block.
  [[nodiscard]] absl::StatusOr<uint64_t> FindBlock(SequenceNumber position, uint64_t end)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads and verifies the block at `offset`. Returns the offset behind it.
  [[nodiscard]] absl::StatusOr<uint64_t> ReadBlock(uint64_t offset, uint64_t end,
                                                   ChangeBlock* block) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the version of the last commit that readers of the feed see, among the blocks before
  // `end`; `none` if there is none.
  [[nodiscard]] absl::StatusOr<SequenceNumber> LastCommit(uint64_t end, SequenceNumber none)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Verifies the header and every block before `end`, and that they follow each other from `after`
  // to `last`.
  [[nodiscard]] absl::Status Verify(uint64_t end, SequenceNumber after, SequenceNumber last)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the descriptor for reading. The next read opens it again.
  void EndReading() ABSL_LOCKS_EXCLUDED(mutex_);

  // --- Writing ---
  // Makes the file, or, if it has `size` bytes that hold, opens it to go on behind them.
  [[nodiscard]] absl::Status OpenForWriting(uint64_t size);
  [[nodiscard]] absl::Status Write(uint64_t offset, std::string_view bytes);
  [[nodiscard]] absl::Status Sync();
  // Closes the descriptor for writing.
  void EndWriting() { writing_ = nullptr; }

 private:
  struct Fence {
    SequenceNumber last;
    uint64_t offset;
  };

  absl::StatusOr<std::shared_ptr<File>> OpenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<File>> OpenForReading() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ChangeBlockHeader> ReadHeader(const File& file, uint64_t offset, uint64_t end,
                                               std::string* bytes) const;

  FileSystem* const file_system_;
  const uint64_t number_;
  const std::string path_;
  FileRemover* const remover_;
  std::atomic<bool> obsolete_{false};
  std::unique_ptr<File> writing_;
  absl::Mutex mutex_;
  std::shared_ptr<File> reading_ ABSL_GUARDED_BY(mutex_);
  // Some blocks of those before known_end_, ascending: a reader walks from the last one on whose
  // end lies before what it looks for.
  std::vector<Fence> fences_ ABSL_GUARDED_BY(mutex_);
  uint64_t known_end_ ABSL_GUARDED_BY(mutex_) = kChangeFileHeaderSize;
};

}  // namespace varve
