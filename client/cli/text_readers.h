// CSV and JSON lines. CSV is that of RFC 4180 with two columns, key and value, and any bytes inside quotes; a first line that says
// "key,value" is a title. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "client/cli/input_file.h"
#include "client/cli/record_reader.h"

namespace varve {

// Appends one line, quoted where it must be.
void AppendCsvRecord(std::string_view key, std::string_view value, std::string* out);
inline constexpr std::string_view kCsvTitle = "key,value\n";

class CsvReader final : public RecordReader {
 public:
  explicit CsvReader(std::unique_ptr<InputFile> input) : input_(std::move(input)) {}

  absl::StatusOr<bool> Next(ImportRecord* record) override;
  uint64_t offset() const override { return input_->offset(); }
  uint64_t line() const override { return line_; }
  bool Seek(uint64_t offset, uint64_t line) override;

 private:
  // Reads the two fields of a record into fields_; returns what is wrong with it, or nothing.
  absl::StatusOr<std::string> ReadRecord();

  const std::unique_ptr<InputFile> input_;
  std::string fields_[2];
  uint64_t line_ = 1;
  bool first_ = true;
};

class JsonLinesReader final : public RecordReader {
 public:
  explicit JsonLinesReader(std::unique_ptr<InputFile> input) : input_(std::move(input)) {}

  absl::StatusOr<bool> Next(ImportRecord* record) override;
  uint64_t offset() const override { return input_->offset(); }
  uint64_t line() const override { return line_; }
  bool Seek(uint64_t offset, uint64_t line) override;

 private:
  const std::unique_ptr<InputFile> input_;
  std::string key_;
  std::string value_;
  uint64_t line_ = 1;
};

}  // namespace varve
