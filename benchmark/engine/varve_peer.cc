// Varve as a library: write buffers and block cache as peer.h says, and mapped reads of what is
// left of the memory, which the library leaves off unless it is asked for them; all else as it
// comes. Not synced is Durability::kNone (the log's bytes are with the kernel when a write returns,
// as with the peers). Its default caches fit no small memory, so there they are set even where
// defaults are asked for.
#include <fmt/format.h>

#include "benchmark/engine/peer.h"
#include "benchmark/process.h"
#include "varve/storage_engine.h"

namespace varve::bench {
namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) Fail("Varve: " + status.ToString());
}

// Returns how much of the memory mapped files may take: all but the write buffers. Large values are
// left to mappings and do not fill the block cache; the kernel takes mapped pages back where the
// cache needs the memory.
size_t LeftFor(const Budget& memory) {
  const uint64_t taken = kWriteBuffers * memory.write_buffer;
  return memory.total > taken ? static_cast<size_t>(memory.total - taken) : 0;
}

class VarveReader : public Reader {
 public:
  explicit VarveReader(StorageEngine* store) : store_(store) {}

  bool Get(std::string_view key, std::string* value) override {
    const absl::StatusOr<ReadResult> result = store_->Get(ReadOptions(), key, value);
    Check(result.status());
    return result->found;
  }

  void MultiGet(std::span<const std::string_view> keys,
                std::span<const std::string*> values) override {
    if (answers_.size() < keys.size()) answers_.resize(keys.size());
    Check(store_->MultiGet(ReadOptions(), absl::MakeConstSpan(keys.data(), keys.size()),
                           absl::MakeSpan(answers_.data(), keys.size())));
    for (size_t i = 0; i < keys.size(); ++i) {
      Check(answers_[i].status);
      values[i] = answers_[i].result.found ? &answers_[i].value : nullptr;
    }
  }

  bool Seek(std::string_view key) override {
    iterator_ = store_->NewIterator(ReadOptions(), "", "", nullptr);
    iterator_->Seek(key);
    return Take();
  }

  bool Next() override {
    iterator_->Next();
    return Take();
  }

 private:
  bool Take() {
    if (!iterator_->Valid()) {
      Check(iterator_->status());
      return false;
    }
    key_ = iterator_->key();
    value_ = iterator_->value();
    return true;
  }

  StorageEngine* const store_;
  std::unique_ptr<Iterator> iterator_;
  std::vector<MultiGetResult> answers_;
};

class VarvePeer : public Peer {
 public:
  explicit VarvePeer(const PeerOptions& options) {
    EngineOptions engine;
    engine.sync = options.synced ? Durability::kAlways : Durability::kNone;
    if (!options.defaults || options.short_of_memory) {
      engine.write_buffer_size = options.memory.write_buffer;
      engine.max_full_write_buffers = kWriteBuffers - 1;
      engine.block_cache_size = options.memory.block_cache;
      engine.mapped_read_budget = LeftFor(options.memory);
    }
    absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(options.dir, engine);
    Check(store.status());
    store_ = *std::move(store);
  }
  ~VarvePeer() override { Check(store_->Close()); }

  void Put(std::string_view key, std::string_view value) override {
    Check(store_->Put(key, value));
  }
  void Delete(std::string_view key) override { Check(store_->Delete(key)); }
  void WriteBatch(std::span<const KeyValue> batch) override {
    varve::WriteBatch updates;
    for (const auto& [key, value] : batch) updates.Put(key, value);
    Check(store_->Write(WriteOptions(), &updates).status());
  }
  bool CanPutAsync() const override { return true; }
  void PutAsync(std::string_view key, std::string_view value, std::function<void()> done) override {
    varve::WriteBatch update;
    update.Put(key, value);
    store_->WriteAsync(WriteOptions(), &update,
                       [done = std::move(done)](const absl::StatusOr<CommitResult>& result) {
                         Check(result.status());
                         done();
                       });
  }
  std::unique_ptr<Reader> NewReader() override {
    return std::make_unique<VarveReader>(store_.get());
  }
  void Flush() override { Check(store_->Flush()); }
  void Compact() override { Check(store_->Compact("", "")); }

 private:
  std::unique_ptr<StorageEngine> store_;
};

}  // namespace

std::unique_ptr<Peer> OpenVarve(const PeerOptions& options) {
  return std::make_unique<VarvePeer>(options);
}

}  // namespace varve::bench
