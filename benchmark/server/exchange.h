// An exchange makes the requests of a load, for keys that it draws in the load's order, and checks
// every reply.
//
// Keys are "key:" and at least 12 digits; counters are "ctr:" and digits. A value begins with its
// key, so that the exchange can check that GET, MGET and RANGE return the values of the keys that
// were asked for, and RANGE the keys that have to follow. The numbers that INCR returns must add up
// to the sum that as many increments give. Any other reply ends the benchmark.
//
// Thread-safety: one thread at a time uses an exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark/server/load.h"
#include "benchmark/workload.h"
#include "benchmark/zipfian.h"

namespace varve::bench {

// A form is a request as bytes, and the layout of its reply.
struct Form {
  enum class Reply { kStatus, kValues, kEntries, kInteger };

  std::string request;          // for key number 0
  std::vector<size_t> keys_at;  // where keys stand in it
  // Where values stand that begin with those keys, or the keys once more: equally many for each
  // key; empty: nowhere.
  std::vector<size_t> values_at;
  enum class Key { kDrawn, kLate, kNew };
  Key key = Key::kDrawn;  // which keys it takes
  Reply reply = Reply::kStatus;
  uint64_t entries = 0;  // of kEntries
  std::string reply_head;
  size_t reply_size = 0;  // 0: to the end of the line
  // The offset in the reply of the first value, or of the first entry's key, behind its length; the
  // next one is `stride` bytes further.
  size_t first_at = 0;
  size_t stride = 0;
};

class Exchange {
 public:
  explicit Exchange(const Load& load);

  const Load& load() const { return load_; }
  // Returns a size that is enough for any reply.
  size_t reply_room() const { return reply_room_; }

  // Returns how many new keys were put into requests.
  uint64_t inserts() const { return next_insert_ - load_.inserted; }

  // Returns the form of the next request: the last one, or one of those before it, each as often as
  // the others.
  const Form& Draw() {
    if (forms_.size() == 1) return forms_[0];
    if (random_.Below(100) >= load_.get_percent) return forms_.back();
    return forms_.size() == 2 ? forms_[0] : forms_[random_.Below(forms_.size() - 1)];
  }

  // Draws keys and writes them into the bytes of a request of that form.
  void Address(const Form& form, char* request);

  // Checks the reply at the beginning of `received` and returns its size; 0 if it isn't complete.
  size_t Take(const Form& form, std::string_view received, const char* request);

  // Checks the sum of the numbers that INCR returned. Requires: all replies were checked.
  void CheckTotals() const;

 private:
  uint64_t NextNumber(const Form& form);
  // Returns the number of a key that was filled or whose insert was acknowledged.
  uint64_t DrawLate();
  void InsertIsAcknowledged(uint64_t insert);
  void CheckValues(const Form& form, const char* reply, const char* request) const;
  void CheckEntries(const Form& form, const char* reply, const char* request);
  void TakeInteger(std::string_view line, const Form& form, const char* request);
  [[noreturn]] void Refuse(std::string_view reply, const Form& form, const char* request) const;

  const Load load_;
  Random random_;
  std::optional<Zipfian> zipfian_;
  const std::string first_key_;
  std::vector<Form> forms_;
  const size_t digit_pairs_;  // of a key that change; those before are always 0
  size_t reply_room_ = 0;
  bool checks_values_ = false;
  uint64_t next_ = 0;
  uint64_t ranges_ = 0;
  uint64_t expected_sum_ = 0;  // of the numbers that INCR returns
  uint64_t received_sum_ = 0;
  uint64_t next_insert_;            // the number of new keys so far
  uint64_t acknowledged_inserts_;   // all before it are
  std::vector<bool> acknowledged_;  // of those from `load_.inserted` on
};

// Returns the key of that number, as a load with keys of this size makes it.
std::string LoadKey(uint64_t number, size_t key_size);

std::string BulkString(std::string_view text);

}  // namespace varve::bench
