#include "util/aligned_bytes.h"

#include <sys/mman.h>

#include <new>

namespace varve {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kWorthAHugePage = kHugePage / 4 * 3;  // bytes: what is left of it is lost
constexpr size_t kSmallAlignment = 64;

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size), taken_(size) {
  const size_t in_whole_pages = size / kHugePage * kHugePage;
  const size_t huge = size - in_whole_pages >= kWorthAHugePage ? in_whole_pages + kHugePage : in_whole_pages;
  if (huge > size) taken_ = huge;
  const auto alignment = static_cast<std::align_val_t>(huge > 0 ? kHugePage : kSmallAlignment);
  data_.reset(static_cast<char*>(::operator new(taken_, alignment)));
  if (huge > 0) (void)madvise(data_.get(), huge, MADV_HUGEPAGE);  // a hint
}

void AlignedBytes::Free::operator()(char* bytes) const { ::operator delete (bytes, std::align_val_t{kSmallAlignment}); }

}  // namespace varve
