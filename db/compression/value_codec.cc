#include "db/compression/value_codec.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "util/base/assert.h"
#include "util/base/kept_buffer.h"

namespace varve {
namespace {

constexpr size_t kMagicSize = 4;  // of a zstd frame

void EncodeMagic(char* at) { EncodeFixed32(at, ZSTD_MAGICNUMBER); }

// zstd's working memory of one thread, and a frame with its magic.
struct Unpacker {
  Unpacker() : context(ZSTD_createDCtx()) {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~Unpacker() { ZSTD_freeDCtx(context); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  ZSTD_DCtx* const context;
  std::string frame;
};

// A thread keeps no more memory than this for frames.
constexpr size_t kMostKeptFrame = size_t{64} << 10;

bool DecompressWithZstd(std::string_view payload, const ZSTD_DDict* dictionary, char* plain,
                        size_t plain_size) {
  thread_local Unpacker unpacker;
  std::string& frame = unpacker.frame;
  if (frame.size() < kMagicSize + payload.size()) frame.resize(kMagicSize + payload.size());
  EncodeMagic(frame.data());
  std::memcpy(frame.data() + kMagicSize, payload.data(), payload.size());
  const size_t size = ZSTD_decompress_usingDDict(unpacker.context, plain, plain_size, frame.data(),
                                                 kMagicSize + payload.size(), dictionary);
  GiveBackIfLarge(&frame, kMostKeptFrame);
  return ZSTD_isError(size) == 0 && size == plain_size;
}

}  // namespace

bool DecompressValue(const CompressedValue& value, const ValueDictionary* dictionary, char* plain) {
  switch (value.codec) {
    case ValueCodec::kLz4: {
      if (value.payload.size() > LZ4_MAX_INPUT_SIZE) return false;
      const int size =
          LZ4_decompress_safe(value.payload.data(), plain, static_cast<int>(value.payload.size()),
                              static_cast<int>(value.plain_size));
      return size >= 0 && static_cast<uint32_t>(size) == value.plain_size;
    }
    case ValueCodec::kZstd:
      return DecompressWithZstd(value.payload, nullptr, plain, value.plain_size);
    case ValueCodec::kZstdWithDictionary:
      return dictionary != nullptr &&
             DecompressWithZstd(value.payload, dictionary->for_decompression(), plain,
                                value.plain_size);
  }
  return false;
}

ValueCompressor::ValueCompressor(std::shared_ptr<const ValueDictionary> dictionary)
    : dictionary_(std::move(dictionary)) {}

ValueCompressor::~ValueCompressor() {
  ZSTD_freeCCtx(context_);
  for (const auto& [level, prepared] : prepared_) ZSTD_freeCDict(prepared);
}

void ValueCompressor::GiveBack() { GiveBackIfLarge(&buffer_); }

std::string_view ValueCompressor::Compress(const Compression& how, std::string_view plain) {
  const size_t saved = std::max(plain.size() / kSavedPart, kSavedBytes);
  const size_t header_room = kMaxVarint32Bytes;
  if (!how.on() || plain.size() <= saved + header_room || plain.size() > kMaxValueSize) return {};
  const bool is_lz4 = how.method == CompressionMethod::kLz4;
  const ValueCodec codec = is_lz4                   ? ValueCodec::kLz4
                           : dictionary_ != nullptr ? ValueCodec::kZstdWithDictionary
                                                    : ValueCodec::kZstd;
  const uint32_t header = static_cast<uint32_t>(plain.size()) << 2 | static_cast<uint32_t>(codec);
  const size_t header_size = VarintLength(header);
  const size_t most = plain.size() - saved - header_size;  // of payload
  // A frame is written with its magic, which then gives way to the header.
  const size_t begin = std::max(header_room, kMagicSize + header_size);
  if (buffer_.size() < begin + most) buffer_.resize(begin + most);
  char* const payload = buffer_.data() + begin;
  const size_t size =
      is_lz4 ? static_cast<size_t>(LZ4_compress_default(
                   plain.data(), payload, static_cast<int>(plain.size()), static_cast<int>(most)))
             : CompressWithZstd(how.level, plain, payload, most);
  if (size == 0) return {};
  VARVE_ASSERT(size <= most);
  EncodeVarint32(payload - header_size, header);
  return {payload - header_size, header_size + size};
}

size_t ValueCompressor::CompressWithZstd(uint8_t level, std::string_view plain, char* at,
                                         size_t room) {
  if (context_ == nullptr) {
    context_ = ZSTD_createCCtx();
    if (context_ == nullptr) throw std::bad_alloc();
    // The record says the size, and its checksum covers the frame.
    ZSTD_CCtx_setParameter(context_, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 0);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_dictIDFlag, 0);
  }
  if (level_ != level) {
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
    if (dictionary_ != nullptr) {
      ZSTD_CDict*& prepared = prepared_[level];
      if (prepared == nullptr)
        prepared =
            ZSTD_createCDict(dictionary_->content().data(), dictionary_->content().size(), level);
      if (prepared == nullptr) throw std::bad_alloc();
      ZSTD_CCtx_refCDict(context_, prepared);
    }
    level_ = level;
  }
  const size_t size =
      ZSTD_compress2(context_, at - kMagicSize, room + kMagicSize, plain.data(), plain.size());
  return ZSTD_isError(size) != 0 ? 0 : size - kMagicSize;
}

}  // namespace varve
