#include "server/eviction/access_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

constexpr char kAccess = 'a', kOrder = 'o', kSpace = 's';
constexpr size_t kRankOffset = 1 + 4 + 4, kKeyOffset = kRankOffset + 8;
constexpr size_t kAccessSize = 8 + 1, kSpaceSize = 4 + 1 + 1 + 8, kSpaceKeySize = 1 + 4;

void PutBig32(std::string* bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(value >> shift));
}
void PutBig64(std::string* bytes, uint64_t value) {
  PutBig32(bytes, static_cast<uint32_t>(value >> 32));
  PutBig32(bytes, static_cast<uint32_t>(value));
}
uint64_t GetBig(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string AccessKey(NamespaceId space, uint64_t hash) {
  std::string key(1, kAccess);
  PutBig32(&key, space);
  PutBig64(&key, hash);
  return key;
}
std::string PrefixOf(char kind, NamespaceId space) {
  std::string key(1, kind);
  PutBig32(&key, space);
  return key;
}
std::string EpochPrefix(NamespaceId space, uint32_t epoch) {
  std::string key = PrefixOf(kOrder, space);
  PutBig32(&key, epoch);
  return key;
}

// Returns the first key behind all that begin with the prefix.
std::string EndOf(std::string prefix) {
  while (static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

// Returns an empty record if the bytes are none.
SpaceRecord DecodeSpace(std::string_view bytes) {
  SpaceRecord record;
  if (bytes.size() != kSpaceSize) return record;
  record.epoch = static_cast<uint32_t>(GetBig(bytes.substr(0, 4)));
  record.rule = {static_cast<EvictionOrder>(bytes[4]), bytes[5] != 0};
  record.walked = GetBig(bytes.substr(6, 8));
  return record;
}

EngineOptions OptionsWithin(uint64_t memory) {
  EngineOptions options;
  options.sync = Durability::kNone;
  // Of a half of the memory: the buffer that is filled, and the one that is flushed.
  options.max_full_write_buffers = 1;
  options.write_buffer_size = memory / 4;
  options.offset_table_cache_size = memory / 4;
  options.block_cache_size = memory / 4;
  options.max_background_jobs = 2;  // parts of merges take memory beyond that
  return options;
}

// So many reads that the device fails in a row are damage.
constexpr int kFailedReads = 3;

void TellDamage(const absl::Status& damage) {
  spdlog::warn("The access index can't be used any more and begins anew; no data is lost: {}",
               damage.ToString());
}

// Returns the first error, but damage before any other one, so that a call counts as one read.
absl::Status TroubleOf(absl::Span<const MultiGetResult> results) {
  absl::Status trouble;
  for (const MultiGetResult& each : results) {
    if (trouble.ok() || absl::IsDataLoss(each.status)) trouble = each.status;
  }
  return trouble;
}

// Removes the files of a damaged index; what is left over fails the next opening.
void RemoveIndex(FileSystem* files, const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = files->List(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) RemoveFile(files, directory + "/" + name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessIndex>> AccessIndex::Open(const std::string& directory,
                                                               uint64_t memory,
                                                               FileSystem* file_system) {
  EngineOptions options = OptionsWithin(std::max(memory, kLeastMemory));
  options.file_system = file_system;
  absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(directory, options);
  if (absl::IsDataLoss(store.status())) {
    TellDamage(store.status());
    RemoveIndex(file_system, directory);
    store = StorageEngine::Open(directory, options);
  }
  if (!store.ok()) return store.status();
  return std::unique_ptr<AccessIndex>(new AccessIndex(*std::move(store)));
}

absl::StatusOr<std::unique_ptr<AccessIndex>> AccessIndex::OpenAnew(const std::string& directory,
                                                                   uint64_t memory,
                                                                   FileSystem* file_system) {
  RemoveIndex(file_system, directory);
  return Open(directory, memory, file_system);
}

absl::Status AccessIndex::Checked(absl::Status read) const {
  if (absl::IsDataLoss(read) || (absl::IsInternal(read) && ++failed_reads_ >= kFailedReads))
    NoteDamage(read);
  return read;
}

void AccessIndex::NoteDamage(const absl::Status& damage) const {
  if (!is_damaged_.exchange(true)) TellDamage(damage);
}

absl::Status AccessIndex::FindAccesses(NamespaceId space, absl::Span<const uint64_t> hashes,
                                       std::vector<KeyAccess>* accesses) const {
  accesses->assign(hashes.size(), KeyAccess());
  std::vector<std::string> keys;
  keys.reserve(hashes.size());
  for (const uint64_t hash : hashes) keys.push_back(AccessKey(space, hash));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<MultiGetResult> results(keys.size());
  ReadOptions options;
  options.wait_until_durable = false;
  VARVE_RETURN_IF_ERROR(store_->MultiGet(options, views, absl::MakeSpan(results)));
  Checked(TroubleOf(results)).IgnoreError();  // what cannot be read is not known
  for (size_t i = 0; i < results.size(); ++i) {
    const MultiGetResult& result = results[i];
    if (!result.status.ok() || !result.result.found || result.value.size() != kAccessSize) continue;
    const std::string_view value = result.value;
    (*accesses)[i] = {GetBig(value.substr(0, 8)), static_cast<uint8_t>(value[8])};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OrderEntry>> AccessIndex::ReadOrder(NamespaceId space, uint32_t epoch,
                                                               std::string_view from,
                                                               size_t most) const {
  const std::string prefix = EpochPrefix(space, epoch);
  VARVE_ASSERT(from.empty() || from.substr(0, prefix.size()) == prefix);
  ReadOptions options;
  options.wait_until_durable = false;
  const std::unique_ptr<Iterator> entries = store_->NewIterator(
      options, from.empty() ? std::string_view(prefix) : from, EndOf(prefix), nullptr);
  std::vector<OrderEntry> read;
  for (entries->SeekToFirst(); entries->Valid() && read.size() < most; entries->Next()) {
    const std::string_view key = entries->key();
    if (key.size() < kKeyOffset) continue;
    read.push_back({space, GetBig(key.substr(kRankOffset, 8)), std::string(key), kKeyOffset});
  }
  VARVE_RETURN_IF_ERROR(Checked(entries->status()));
  failed_reads_ = 0;
  return read;
}

absl::StatusOr<uint64_t> AccessIndex::CountMissing(absl::Span<const std::string> entries) const {
  if (entries.empty()) return 0;
  const std::vector<std::string_view> keys(entries.begin(), entries.end());
  std::vector<MultiGetResult> results(keys.size());
  ReadOptions options;
  options.wait_until_durable = false;
  VARVE_RETURN_IF_ERROR(store_->MultiGet(options, keys, absl::MakeSpan(results)));
  Checked(TroubleOf(results)).IgnoreError();
  return static_cast<uint64_t>(std::count_if(
      results.begin(), results.end(),
      [](const MultiGetResult& each) { return !each.status.ok() || !each.result.found; }));
}

uint64_t AccessIndex::EstimateAccesses(NamespaceId space) const {
  const std::string prefix = PrefixOf(kAccess, space);
  return store_->EstimateSize(kDefaultNamespace, prefix, EndOf(prefix)).keys;
}

absl::StatusOr<SpaceRecord> AccessIndex::ReadSpace(NamespaceId space) const {
  ReadOptions options;
  options.wait_until_durable = false;
  std::string value;
  const absl::StatusOr<ReadResult> read = store_->Get(options, PrefixOf(kSpace, space), &value);
  VARVE_RETURN_IF_ERROR(Checked(read.status()));
  return read->found ? DecodeSpace(value) : SpaceRecord();
}

absl::StatusOr<std::vector<NamespaceId>> AccessIndex::ReadSpaces() const {
  ReadOptions options;
  options.wait_until_durable = false;
  const std::string begin(1, kSpace);
  const std::unique_ptr<Iterator> records =
      store_->NewIterator(options, begin, EndOf(begin), nullptr);
  std::vector<NamespaceId> spaces;
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    const std::string_view key = records->key();
    if (key.size() == kSpaceKeySize)
      spaces.push_back(static_cast<NamespaceId>(GetBig(key.substr(1))));
  }
  VARVE_RETURN_IF_ERROR(Checked(records->status()));
  return spaces;
}

absl::Status AccessIndex::ForgetOrdersBehind(SequenceNumber newest) {
  ReadOptions options;
  options.wait_until_durable = false;
  const std::string begin(1, kSpace);
  const std::unique_ptr<Iterator> records =
      store_->NewIterator(options, begin, EndOf(begin), nullptr);
  WriteBatch batch;
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    const std::string_view key = records->key();
    SpaceRecord record = DecodeSpace(records->value());
    if (key.size() != kSpaceKeySize || record.walked <= newest) continue;
    const auto space = static_cast<NamespaceId>(GetBig(key.substr(1)));
    DeleteOrder(space, record.epoch, &batch);
    ++record.epoch;
    record.walked = kNoSequence;
    PutSpace(space, record, &batch);
  }
  VARVE_RETURN_IF_ERROR(Checked(records->status()));
  return Commit(&batch);
}

void AccessIndex::PutAccess(NamespaceId space, uint64_t hash, const KeyAccess& access,
                            WriteBatch* batch) {
  std::string value;
  PutBig64(&value, access.at_ms);
  value.push_back(static_cast<char>(access.uses));
  batch->Put(AccessKey(space, hash), value);
}

void AccessIndex::DeleteAccess(NamespaceId space, uint64_t hash, WriteBatch* batch) {
  batch->Delete(AccessKey(space, hash));
}

std::string AccessIndex::OrderKey(NamespaceId space, uint32_t epoch, uint64_t rank,
                                  std::string_view key) {
  std::string bytes = EpochPrefix(space, epoch);
  PutBig64(&bytes, rank);
  bytes += key;
  return bytes;
}

void AccessIndex::PutSpace(NamespaceId space, const SpaceRecord& record, WriteBatch* batch) {
  std::string value;
  PutBig32(&value, record.epoch);
  value.push_back(static_cast<char>(record.rule.order));
  value.push_back(record.rule.volatile_only ? 1 : 0);
  PutBig64(&value, record.walked);
  batch->Put(PrefixOf(kSpace, space), value);
}

void AccessIndex::DeleteAccesses(NamespaceId space, WriteBatch* batch) {
  const std::string prefix = PrefixOf(kAccess, space);
  batch->DeleteRange(prefix, EndOf(prefix));
}

void AccessIndex::DeleteOrder(NamespaceId space, uint32_t epoch, WriteBatch* batch) {
  const std::string prefix = EpochPrefix(space, epoch);
  batch->DeleteRange(prefix, EndOf(prefix));
}

void AccessIndex::DeleteSpace(NamespaceId space, WriteBatch* batch) {
  for (const char kind : {kAccess, kOrder, kSpace}) {
    const std::string prefix = PrefixOf(kind, space);
    batch->DeleteRange(prefix, EndOf(prefix));
  }
}

absl::Status AccessIndex::Commit(WriteBatch* batch) {
  if (batch->empty()) return absl::OkStatus();
  absl::Status written = store_->Submit(WriteOptions(), batch).status();
  if (written.ok()) written = store_->Push();
  // A full disk may have room again; a log that has failed takes nothing more.
  if (absl::IsInternal(written) || absl::IsUnavailable(written)) NoteDamage(written);
  return written;
}

}  // namespace varve
