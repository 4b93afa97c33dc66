// The read forecast of a cursor says how far the cursor will probably come behind its seek, and
// asks the disk for all of these data at once. It takes the distance from the scan history of the
// segment (db/segment/scan_history.h), and tells that history how far the cursor has come.
//
// Thread-safety: a forecast belongs to one thread; scan histories are shared.
#pragma once

#include <cstdint>
#include <utility>

#include "db/segment/scan_history.h"
#include "util/os/file_system.h"

namespace varve {

class ReadForecast {
 public:
  // Requires: `history` outlives the forecast.
  explicit ReadForecast(ScanHistory* history) : history_(*history) {}

  // Says that the caller will move back from where the next seek leads.
  void ExpectWayBack() { goes_back_ = true; }
  // A seek begins at the start of the data; BeginAt() says where it leads.
  void Restart() {
    sought_at_ = end_ = 0;
    is_on_disk_ = false;
  }
  void BeginAt(uint64_t offset) { sought_at_ = offset; }
  // The seek has ended: the cursor moves on from here, or back.
  void EndSeek() {
    if (std::exchange(goes_back_, false)) has_read_ = false;
  }

  // Returns how many bytes from `offset` on the cursor will probably come to.
  uint64_t BytesFrom(uint64_t offset) const {
    const uint64_t reach = goes_back_ ? 0 : sought_at_ + history_.reach();
    return offset < reach ? reach - offset : 0;
  }
  // Asks the disk for the data from `begin` to `end`, which are the forecast from now on. A thread
  // whose last calls were in vain, as the kernel had the data, leaves out nearly all of them.
  // Requires: !is_made().
  void Make(uint64_t begin, uint64_t end, const File& file);
  bool is_made() const { return end_ != 0; }
  uint64_t end() const { return end_; }
  // Returns whether the disk was asked, as the kernel did not have the data.
  bool is_on_disk() const { return is_on_disk_; }
  // Returns how much of the forecast lies from `offset` on; `otherwise` if nothing does.
  uint64_t SizeFrom(uint64_t offset, uint64_t otherwise) const {
    return sought_at_ <= offset && offset < end_ ? end_ - offset : otherwise;
  }

  // Notes that the cursor has read past the cache; then Leave() tells how far it came.
  void NoteRead() { has_read_ = true; }
  // Has Leave() tell nothing, as the cursor moves back.
  void ForgetRead() { has_read_ = false; }
  // Tells the history that the cursor came to `reached` behind the seek, if it has read since then.
  void Leave(uint64_t reached) {
    if (std::exchange(has_read_, false) && reached > sought_at_)
      history_.NoteReach(reached - sought_at_);
  }

 private:
  ScanHistory& history_;
  uint64_t sought_at_ = 0;   // where the block begins to which the last seek led
  uint64_t end_ = 0;         // the end of the data that are forecast; 0: none are
  bool is_on_disk_ = false;  // the kernel did not have what lies before end_
  bool goes_back_ = false;
  bool has_read_ = false;
};

}  // namespace varve
