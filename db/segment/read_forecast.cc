#include "db/segment/read_forecast.h"

#include "util/base/assert.h"

namespace varve {
namespace {

// An ask choice decides, for one thread, whether it asks the disk for data before it reads them.
// Gain: calls in vain take a tenth of a seek where the kernel has all data.
class AskChoice {
 public:
  bool Asks() {
    if (left_out_ == 0) return true;
    --left_out_;
    return false;
  }
  void Note(bool was_in_vain) {
    in_vain_ = was_in_vain ? in_vain_ + 1 : 0;
    if (in_vain_ >= kInVain) left_out_ = kLeftOut;
  }

 private:
  static constexpr uint32_t kInVain = 8, kLeftOut = 15;

  uint32_t in_vain_ = 0;  // in a row
  uint32_t left_out_ = 0;
};

thread_local AskChoice ask_choice_of_this_thread;

}  // namespace

void ReadForecast::Make(uint64_t begin, uint64_t end, const File& file) {
  VARVE_ASSERT(!is_made() && begin < end);
  end_ = end;
  if (!ask_choice_of_this_thread.Asks()) return;
  is_on_disk_ = !file.Prefetch(begin, end - begin);
  ask_choice_of_this_thread.Note(!is_on_disk_);
}

}  // namespace varve
