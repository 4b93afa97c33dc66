#include "db/compaction/value_recompression.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/compression/value_codec.h"
#include "db/format/compressed_value.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "type/tree_key.h"
#include "util/base/kept_buffer.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint32_t kInVain = 64;    // looks in a row
constexpr uint32_t kLookedAt = 64;  // of so many values one, from then on

bool IsOf(CompressionMethod method, std::string_view compressed) {
  CompressedValue value;
  if (!ParseCompressedValue(compressed, &value)) return false;
  return (value.codec == ValueCodec::kLz4) == (method == CompressionMethod::kLz4);
}

class Recompression final : public ValueSeparation {
 public:
  Recompression(ValueFileWriter::Options files, CompressionPolicy compression)
      : registry_(files.registry),
        compression_(std::move(compression)),
        writer_(std::move(files)) {}

  absl::StatusOr<RecordView> Separate(const RecordView& record) override {
    ValueHandle handle;
    if (!IsSeparated(record) || !DecodeValueHandle(record.value, &handle)) return record;
    const NamespaceGeneration generation = GenerationOf(record.key);
    const Compression wanted = compression_.Of(generation);
    if (!wanted.on() && !IsCompressed(record)) return record;
    Looks& looks = looks_[{handle.file_number, generation, IsCompressed(record)}];
    if (looks.in_vain >= kInVain && ++looks.passed % kLookedAt != 0) return record;
    const absl::Cleanup give_back = [this] { GiveBack(); };
    VARVE_ASSIGN_OR_RETURN(const bool is_better, Recompress(record, handle, wanted));
    looks.in_vain = is_better ? 0 : looks.in_vain + 1;
    if (!is_better) return record;
    operation_.clear();
    AppendLargeOperation(recompressed_, &operation_);
    VARVE_ASSIGN_OR_RETURN(const ValueHandle moved, writer_.Add(operation_, handle.value_size));
    encoded_handle_.clear();
    AppendValueHandle(moved, &encoded_handle_);
    RecordView result = record;
    result.value = encoded_handle_;
    result.flags =
        static_cast<uint8_t>((record.flags & ~kCompressed) | (recompressed_.flags & kCompressed));
    return result;
  }
  absl::Status Finish() override { return writer_.Finish(); }
  void Keep() override { writer_.Keep(); }
  uint64_t bytes_written() const override { return writer_.bytes_written(); }

 private:
  struct Looks {
    uint32_t in_vain = 0;
    uint32_t passed = 0;
  };
  using Kind = std::tuple<uint64_t, NamespaceGeneration, bool>;  // file, generation, compressed

  // Ends what `recompressed_` views into.
  void GiveBack() {
    for (std::string* const buffer : {&stored_, &plain_, &operation_}) GiveBackIfLarge(buffer);
    compressor_.GiveBack();
  }

  // Returns whether the value is to be stored in another way, which `recompressed_` holds then.
  absl::StatusOr<bool> Recompress(const RecordView& record, const ValueHandle& handle,
                                  const Compression& wanted) {
    const std::shared_ptr<ValueFile> file = registry_->Find(handle.file_number);
    if (file == nullptr)
      return absl::InternalError("a value file is gone that a segment points into");
    if (file->is_damaged()) return false;
    const absl::Status read = file->ReadStoredOperation(handle, UserKeyOf(record.key),
                                                        record.sequence, &stored_, &recompressed_);
    if (absl::IsDataLoss(read)) return false;  // the file has logged it
    VARVE_RETURN_IF_ERROR(read);
    const bool was_compressed = IsCompressed(recompressed_);
    if (was_compressed && wanted.on() && IsOf(wanted.method, recompressed_.value)) return false;
    if (const auto damage = DecompressOperation(&recompressed_, &plain_); !damage.empty()) {
      // Is logged.
      file->Damaged(handle.offset, damage).IgnoreError();
      return false;
    }
    if (!wanted.on()) return true;
    const std::string_view compressed = compressor_.Compress(wanted, recompressed_.value);
    if (compressed.empty()) return false;
    recompressed_.value = compressed;
    recompressed_.flags |= kCompressed;
    return true;
  }

  ValueFiles* const registry_;
  const CompressionPolicy compression_;
  ValueFileWriter writer_;
  ValueCompressor compressor_{nullptr};
  std::map<Kind, Looks> looks_;
  std::string stored_;  // an operation as it lies in its file
  std::string plain_;   // its value
  RecordView recompressed_;
  std::string operation_;
  std::string encoded_handle_;
};

}  // namespace

std::unique_ptr<ValueSeparation> NewValueRecompression(ValueFileWriter::Options files,
                                                       CompressionPolicy compression) {
  return std::make_unique<Recompression>(std::move(files), std::move(compression));
}

}  // namespace varve
