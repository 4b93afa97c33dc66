#include "db/segment/segment_dictionary.h"

#include <utility>

#include "db/segment/offset_table_cache.h"
#include "db/segment/segment_format.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"
#include "util/os/disk_wait.h"

namespace varve {

void AppendDictionary(const ValueDictionary& dictionary, uint64_t number,
                      std::string* destination) {
  const size_t start = destination->size();
  PutFixed32(destination, 0);
  PutFixed32(destination, static_cast<uint32_t>(dictionary.content().size()));
  destination->append(kDictionaryMagic).append(dictionary.content());
  const std::string_view rest = std::string_view(*destination).substr(start + 4);
  EncodeFixed32(destination->data() + start,
                Checksum(rest, SegmentPartSeed(number, SegmentPart::kDictionary)));
}

std::shared_ptr<const ValueDictionary> DecodeDictionary(std::string_view bytes, uint64_t number) {
  if (bytes.size() < kDictionaryHeaderSize || bytes.substr(8, 8) != kDictionaryMagic)
    return nullptr;
  const uint32_t size = DecodeFixed32(bytes.data() + 4);
  if (size > kMaxDictionarySize || size > bytes.size() - kDictionaryHeaderSize) return nullptr;
  const std::string_view rest = bytes.substr(4, kDictionaryHeaderSize - 4 + size);
  if (DecodeFixed32(bytes.data()) !=
      Checksum(rest, SegmentPartSeed(number, SegmentPart::kDictionary)))
    return nullptr;
  auto dictionary = ValueDictionary::Create(std::string(bytes.substr(kDictionaryHeaderSize, size)));
  return dictionary.ok() ? *std::move(dictionary) : nullptr;
}

absl::StatusOr<std::shared_ptr<const ValueDictionary>> ReadDictionary(const File& file,
                                                                      const SegmentFooter& footer) {
  if (footer.dictionary_size == 0) return std::shared_ptr<const ValueDictionary>();
  const uint64_t offset = footer.dictionary_offset();
  if (footer.dictionary_size <= kDictionaryHeaderSize + kMaxDictionarySize) {
    std::string bytes(footer.dictionary_size, '\0');
    const DiskWait wait;
    VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(offset, bytes.size(), bytes.data()));
    std::shared_ptr<const ValueDictionary> dictionary =
        DecodeDictionary(std::string_view(bytes).substr(0, read), footer.info.number);
    if (dictionary != nullptr &&
        dictionary->content().size() + kDictionaryHeaderSize == footer.dictionary_size)
      return dictionary;
  }
  return Corruption(file.path(), offset, "segment dictionary: wrong checksum, or cut short");
}

ResidentDictionary::~ResidentDictionary() {
  const ValueDictionary* const dictionary = ready_.load(std::memory_order_acquire);
  if (dictionary != nullptr) budget_->Release(dictionary->charge());
}

absl::StatusOr<const ValueDictionary*> ResidentDictionary::Get(const File& file,
                                                               const SegmentFooter& footer) {
  if (footer.dictionary_size == 0) return nullptr;
  const ValueDictionary* const ready = ready_.load(std::memory_order_acquire);
  if (ready != nullptr) [[likely]]
    return ready;
  const DiskWait wait;  // for a thread that reads under the lock, too
  absl::MutexLock lock(&mutex_);
  if (owner_ == nullptr) {
    VARVE_ASSIGN_OR_RETURN(owner_, ReadDictionary(file, footer));
    VARVE_ASSERT(owner_ != nullptr);
    budget_->Hold(owner_->charge());
    ready_.store(owner_.get(), std::memory_order_release);
  }
  return owner_.get();
}

absl::StatusOr<std::shared_ptr<const ValueDictionary>> ResidentDictionary::Share(
    const File& file, const SegmentFooter& footer) {
  VARVE_RETURN_IF_ERROR(Get(file, footer).status());
  absl::MutexLock lock(&mutex_);
  return owner_;
}

}  // namespace varve
