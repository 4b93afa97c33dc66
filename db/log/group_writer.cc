#include "db/log/group_writer.h"

#include <array>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/log/log_buffer.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"

namespace varve {
namespace {

class BufferedGroupWriter final : public GroupWriter {
 public:
  BufferedGroupWriter(LogWriter* writer, LogProgress* progress)
      : writer_(writer), progress_(progress) {}

  absl::Status WriteGroup() override {
    const absl::Status synced = writer_->WriteAndSync();
    progress_->CountGroup();
    return synced;
  }
  void WriteMark() override { writer_->WriteMark(/*durably=*/false); }
  int most_at_once() const override { return 1; }

 private:
  LogWriter* const writer_;
  LogProgress* const progress_;
};

class DirectGroupWriter final : public GroupWriter {
 public:
  DirectGroupWriter(LogWriter* writer, LogProgress* progress)
      : writer_(writer), progress_(progress), buffered_(writer, progress) {}

  absl::Status WriteGroup() override {
    const size_t slot = TakeSlot();
    LogBuffer* const buffer = &buffers_[slot];
    const std::optional<LogWriter::DirectGroup> group = writer_->TakeDirectGroup(buffer);
    buffer->AwaitCopies();
    absl::Status status = group.has_value() ? Write(*group) : absl::OkStatus();
    buffer->Clear(writer_->kept_memory());
    if (group.has_value()) status = writer_->EndDirectGroup(*group, status);
    GiveBackSlot(slot);
    return group.has_value() ? status : buffered_.WriteGroup();
  }
  // On disk at once: nothing else would put it there before a direct group behind it, which
  // recovery finds only through it.
  void WriteMark() override { writer_->WriteMark(/*durably=*/true); }
  int most_at_once() const override { return kSlots; }

 private:
  static constexpr int kSlots = 2;

  absl::Status Write(const LogWriter::DirectGroup& group) {
    if (group.bytes.empty()) return absl::OkStatus();
    progress_->CountSync();
    progress_->CountGroup();
    progress_->CountWrite(group.bytes.size());
    return GuardMemory("writing the log",
                       [&group] { return group.file->WriteDurably(group.offset, group.bytes); });
  }

  // Waits for a slot, whose buffer is the caller's until it gives the slot back.
  size_t TakeSlot() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    while (true) {
      for (size_t slot = 0; slot < kSlots; ++slot) {
        if (taken_[slot]) continue;
        VARVE_ASSERT(buffers_[slot].empty());
        taken_[slot] = true;
        return slot;
      }
      given_back_.Wait(&mutex_);
    }
  }
  void GiveBackSlot(size_t slot) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(taken_[slot]);
    taken_[slot] = false;
    given_back_.Signal();
  }

  LogWriter* const writer_;
  LogProgress* const progress_;
  BufferedGroupWriter buffered_;  // for what has to go the other way
  std::array<LogBuffer, kSlots> buffers_;
  absl::Mutex mutex_;  // held over no other lock
  SteadyCondition given_back_;
  std::array<bool, kSlots> taken_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace

std::unique_ptr<GroupWriter> NewGroupWriter(SyncBackend backend, LogWriter* writer,
                                            LogProgress* progress) {
  if (backend == SyncBackend::kDirect) return std::make_unique<DirectGroupWriter>(writer, progress);
  return std::make_unique<BufferedGroupWriter>(writer, progress);
}

}  // namespace varve
