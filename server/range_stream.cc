#include "server/range_stream.h"

#include <utility>

#include "spdlog/spdlog.h"

namespace varve {

RangeStream::RangeStream(CommandContext& context, KeyRange range, const RangeOptions& options)
    : range_(std::move(range)), options_(options) {
  if (options_.limit >= 0) remaining_ = options_.limit;
  if (range_.empty || options_.offset < 0) remaining_ = 0;
}

void RangeStream::Start(Iterator* iterator) const {
  if (options_.reverse) {
    iterator->SeekToLast();
  } else {
    iterator->SeekToFirst();
  }
}

void RangeStream::Step(Iterator* iterator) const {
  if (options_.reverse) {
    iterator->Prev();
  } else {
    iterator->Next();
  }
}

void RangeStream::Emit(RespWriter* writer) {
  writer->Bulk(iterator_->key());
  if (!options_.keys_only) writer->Bulk(iterator_->value());
  --remaining_;
  Step(iterator_.get());
}

void RangeStream::Open(CommandContext& context) {
  ReadOptions options = GatedRead();
  options.snapshot = snapshot_.get();
  options.fill_cache = false;
  iterator_ = context.store.NewIterator(options, range_.lower, range_.upper, &gate_);
}

void RangeStream::Rest() {
  if (iterator_ == nullptr || !iterator_->Valid()) return;
  resume_.emplace(iterator_->key());
  iterator_.reset();
}

bool RangeStream::Begin(CommandContext& context) {
  const size_t per_key = options_.keys_only ? 1 : 2;
  if (remaining_ == 0) {
    context.reply.Array(0);
    return true;
  }
  snapshot_ = context.store.GetSnapshot();
  Open(context);
  Start(iterator_.get());
  for (int64_t skip = options_.offset; skip > 0 && iterator_->Valid(); --skip) Step(iterator_.get());

  ByteBuffer collected;
  RespWriter writer(&collected, context.reply.protocol());
  uint64_t keys = 0;
  while (iterator_->Valid() && remaining_ > 0 && collected.size() < kCollectBytes) {
    Emit(&writer);
    ++keys;
  }
  if (iterator_->Valid() && remaining_ > 0) {
    const std::string resume(iterator_->key());
    int64_t rest = 0;
    while (iterator_->Valid() && rest < remaining_) {
      ++rest;
      Step(iterator_.get());
    }
    if (iterator_->status().ok()) {
      keys += static_cast<uint64_t>(rest);
      remaining_ = rest;
      iterator_->Seek(resume);  // a key of the range, so both directions find it
    }
  } else {
    remaining_ = 0;
  }
  if (const absl::Status status = iterator_->status(); !status.ok()) {
    context.Fail(status);
    return false;
  }
  context.reply.Array(keys * per_key);
  context.reply.buffer()->Append(collected.view());
  return true;
}

ReplyStream::Progress RangeStream::Produce(CommandContext& context, size_t budget) {
  const size_t full = context.reply.buffer()->size() + budget;
  if (!begun_) {
    begun_ = true;
    const bool readable = Begin(context);
    context.DependOn(gate_);
    if (!readable) return Progress::kDone;
  }
  if (resume_.has_value()) {
    Open(context);
    iterator_->Seek(*resume_);  // a key of the range, so both directions find it
    resume_.reset();
  }
  context.DependOn(gate_);
  while (remaining_ > 0 && context.reply.buffer()->size() < full) {
    if (!iterator_->Valid()) {
      spdlog::error("A range reply broke off after its length was sent: {}", iterator_->status().ToString());
      return Progress::kBroken;
    }
    Emit(&context.reply);
  }
  return remaining_ == 0 ? Progress::kDone : Progress::kMore;
}

}  // namespace varve
