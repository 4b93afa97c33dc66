// Readers of CSV files and JSON lines. CSV is that of RFC 4180 with two to four columns and any
// bytes inside quotes: the key, the value, the instant at which the key expires, in milliseconds
// since the epoch (empty: never), and the metadata (empty: none). A first line that begins with
// "key,value" is a title.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/console/input_file.h"
#include "client/console/record_reader.h"

namespace varve {

// Appends one line, quoted where it must be. `expiry`: a number, or nothing.
void AppendCsvRecord(std::string_view key, std::string_view value, std::string_view expiry,
                     std::string_view metadata, std::string* out);
inline constexpr std::string_view kCsvTitle = "key,value,expires_at_ms,metadata\n";
inline constexpr std::string_view kCsvTitleWithoutMetadata = "key,value,expires_at_ms\n";

// Reads pairs: each pair becomes a SET, or a DEL where its time is over.
class PairReader : public RecordReader {
 public:
  absl::StatusOr<bool> Next(ImportRecord* record) final;
  uint64_t offset() const final { return input_->offset(); }
  uint64_t line() const final { return line_; }
  bool Seek(uint64_t offset, uint64_t line) final;

 protected:
  struct Pair {
    std::string_view key;
    std::string_view value;
    std::string_view expiry;
    std::string_view metadata;
  };

  // `now_ms`: what has expired by then is left out.
  PairReader(std::unique_ptr<InputFile> input, uint64_t now_ms)
      : input_(std::move(input)), now_ms_(now_ms) {}

  // Reads the next pair, whose views stay in use until the next call, and tells in `record` where
  // it begins and what is wrong with it. Nothing: the file has ended.
  virtual absl::StatusOr<std::optional<Pair>> ReadPair(ImportRecord* record) = 0;

  const std::unique_ptr<InputFile> input_;
  uint64_t line_ = 1;
  bool at_begin_ = true;  // no pair was read yet

 private:
  // Makes the record's command of the pair, unless it is wrong already.
  void BecomeSet(const Pair& pair, ImportRecord* record);

  const uint64_t now_ms_;
};

class CsvReader final : public PairReader {
 public:
  CsvReader(std::unique_ptr<InputFile> input, uint64_t now_ms)
      : PairReader(std::move(input), now_ms) {}

 private:
  absl::StatusOr<std::optional<Pair>> ReadPair(ImportRecord* record) override;
  // Reads the fields of a record into fields_; returns what is wrong with it, or nothing.
  absl::StatusOr<std::string> ReadFields();

  std::string fields_[4];
};

class JsonLinesReader final : public PairReader {
 public:
  JsonLinesReader(std::unique_ptr<InputFile> input, uint64_t now_ms)
      : PairReader(std::move(input), now_ms) {}

 private:
  absl::StatusOr<std::optional<Pair>> ReadPair(ImportRecord* record) override;

  std::string key_;
  std::string value_;
  std::string expiry_;
  std::string metadata_;
};

}  // namespace varve
