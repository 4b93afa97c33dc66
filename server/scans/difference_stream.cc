#include "server/scans/difference_stream.h"

#include <algorithm>
#include <utility>

#include "spdlog/spdlog.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Between two looks at the clock of the slice.
constexpr size_t kStepsAtOnce = 64;
// An iterator keeps files and write buffers of its time.
constexpr std::chrono::seconds kDifferenceAge{1};

}  // namespace

DifferenceStream::DifferenceStream(ComparedState a, ComparedState b, SelectedKeys keys,
                                   int64_t limit)
    : a_(std::move(a)), b_(std::move(b)), keys_(std::move(keys)) {
  if (limit >= 0) remaining_ = limit;
}

void DifferenceStream::Rest() {
  if (iterator_ == nullptr) return;
  place_.from.assign(iterator_->position());
  iterator_.reset();
}

bool DifferenceStream::Open(CommandContext& context) {
  const KeyRange& range = keys_.ranges[place_.range];
  auto opened = context.server.store->NewDifferenceIterator(
      a_, b_, std::max(range.lower, place_.from), range.upper);
  status_ = opened.status();
  if (!opened.ok()) return false;
  iterator_ = *std::move(opened);
  opened_ = std::chrono::steady_clock::now();
  return true;
}

bool DifferenceStream::Find(CommandContext& context) {
  while (!AtEnd()) {
    if (iterator_ == nullptr && !Open(context)) return false;
    while (!iterator_->AtEnd()) {
      if (context.SliceSpent(kStepsAtOnce)) return false;
      if (iterator_->Next(kStepsAtOnce) && keys_.Shows(iterator_->key())) return true;
    }
    context.DependOn(iterator_->durable_after());
    status_ = iterator_->status();
    if (!status_.ok()) return false;
    iterator_.reset();
    place_ = {.range = place_.range + 1, .from = {}};
  }
  return false;
}

bool DifferenceStream::Prepare(CommandContext& context) {
  RespWriter writer(&collected_, context.reply.protocol());
  while (phase_ == Phase::kCollect) {
    if (remaining_ > 0 && collected_.size() < kCollectBytes && Find(context)) {
      writer.Bulk(iterator_->key());
      ++collected_keys_;
      --remaining_;
      continue;
    }
    const bool wants_more = remaining_ > 0 && !AtEnd();
    if (wants_more && collected_.size() < kCollectBytes) return false;
    if (wants_more) {
      rest_begins_.range = place_.range;
      rest_begins_.from.assign(iterator_ != nullptr ? iterator_->position() : place_.from);
    }
    phase_ = Phase::kCount;
  }
  while (rest_ < remaining_ && Find(context)) ++rest_;
  if (!status_.ok() || (rest_ < remaining_ && !AtEnd())) return false;
  Announce(context);
  return true;
}

void DifferenceStream::Announce(CommandContext& context) {
  context.reply.Array(static_cast<size_t>(collected_keys_ + rest_));
  context.reply.buffer()->Append(collected_.view());
  collected_ = ByteBuffer();
  remaining_ = rest_;
  if (rest_ > 0) {
    iterator_.reset();
    place_ = std::move(rest_begins_);
  }
  phase_ = Phase::kSend;
}

ReplyStream::Progress DifferenceStream::Produce(CommandContext& context, size_t budget) {
  const size_t full = context.reply.buffer()->size() + budget;
  // A new iterator begins its search anew, so it takes the place of one that came further.
  if (iterator_ != nullptr && iterator_->position() > place_.from &&
      std::chrono::steady_clock::now() - opened_ > kDifferenceAge)
    Rest();
  const bool prepared = phase_ == Phase::kSend || Prepare(context);
  while (prepared && remaining_ > 0 && context.reply.buffer()->size() < full && Find(context)) {
    context.reply.Bulk(iterator_->key());
    --remaining_;
  }
  if (iterator_ != nullptr) context.DependOn(iterator_->durable_after());
  if (prepared && remaining_ == 0) return Progress::kDone;
  if (status_.ok() && !(prepared && AtEnd())) return Progress::kMore;
  if (!prepared) {
    context.Fail(status_);
    return Progress::kDone;
  }
  spdlog::error("A reply broke off after its length was sent: {}", status_.ToString());
  return Progress::kBroken;
}

}  // namespace varve
