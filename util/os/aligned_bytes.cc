#include "util/os/aligned_bytes.h"

#include <sys/mman.h>

#include <cstdint>

namespace varve {
namespace {

constexpr size_t kSmallPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kWorthAHugePage = kHugePage / 4 * 3;  // bytes: what is left of it is lost

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size), capacity_(size) {
  const size_t in_whole_pages = size / kHugePage * kHugePage;
  const size_t huge =
      size - in_whole_pages >= kWorthAHugePage ? in_whole_pages + kHugePage : in_whole_pages;
  if (huge > size) capacity_ = huge;
  const auto alignment = static_cast<std::align_val_t>(huge > 0 ? kHugePage : kSmallAlignment);
  data_ = {static_cast<char*>(::operator new(capacity_, alignment)), Free{alignment}};
  if (huge > 0) (void)madvise(data_.get(), huge, MADV_HUGEPAGE);  // a hint
}

void TakeMemory(char* bytes, size_t size) {
  for (size_t i = 0; i < size; i += kSmallPage) static_cast<volatile char*>(bytes)[i] = 0;
}

void DropMemory(char* bytes, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(bytes);
  const size_t before = -address % kSmallPage;
  if (size < before + kSmallPage) return;
  (void)madvise(bytes + before, (size - before) / kSmallPage * kSmallPage, MADV_DONTNEED);
}

}  // namespace varve
