// Files that import reads: commands (as of an AOF), CSV, JSON lines, RDB, and the manifest of a
// multi-part AOF. Reading ends, offsets ascend, a reader that goes on at a record's offset reads
// the same from there, and pairs are read again from what export writes.
//
//   input = [ format: 1, modulo 5 ][ the file ]
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/console/command_reader.h"
#include "client/redis_files/redis_files.h"
#include "client/transfer/formats.h"
#include "client/transfer/text_readers.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/resp/resp_parser.h"

namespace varve::fuzz {
namespace {

constexpr uint64_t kNowMs = 1'700'000'000'000;

enum Format : uint8_t { kCommands, kCsv, kJson, kRdb, kAofManifest, kFormats };

// A file in memory with a path to open it by.
class NamedBytes {
 public:
  NamedBytes() : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    VARVE_FUZZ_REQUIRE(descriptor_ >= 0);
  }
  const std::string& Set(std::string_view bytes) {
    VARVE_FUZZ_REQUIRE(ftruncate(descriptor_, 0) == 0);
    VARVE_FUZZ_REQUIRE(pwrite(descriptor_, bytes.data(), bytes.size(), 0) ==
                       static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  const int descriptor_;
  const std::string path_ = "/proc/self/fd/" + std::to_string(descriptor_);
};

struct Read {
  std::vector<std::string> words;
  uint64_t offset;
  uint64_t line;
  bool wrong;
  bool operator==(const Read&) const = default;
};

std::unique_ptr<RecordReader> OpenReaderOf(Format format, const std::string& path) {
  if (format == kRdb || format == kAofManifest) {
    auto reader = RedisFilesReader::Open(path, /*allow_flush=*/false, kNowMs);
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  auto input = InputFile::Open(path);
  VARVE_FUZZ_REQUIRE(input.ok());
  if (format == kCommands)
    return std::make_unique<CommandReader>(*std::move(input), /*allow_flush=*/false, kNowMs);
  if (format == kCsv) return std::make_unique<CsvReader>(*std::move(input), kNowMs);
  return std::make_unique<JsonLinesReader>(*std::move(input), kNowMs);
}

std::vector<Read> ReadAll(RecordReader* reader, size_t file_size) {
  std::vector<Read> all;
  ImportRecord record;
  while (true) {
    const absl::StatusOr<bool> next = reader->Next(&record);
    if (!next.ok() || !*next) break;
    VARVE_FUZZ_REQUIRE(all.empty() || record.offset > all.back().offset);
    VARVE_FUZZ_REQUIRE(record.offset < file_size);
    VARVE_FUZZ_REQUIRE(!record.words.empty() || !record.wrong.empty());
    const bool wrong = !record.wrong.empty();  // then the words mean nothing
    if (wrong) record.words.clear();
    all.push_back({{record.words.begin(), record.words.end()}, record.offset, record.line, wrong});
  }
  VARVE_FUZZ_REQUIRE(reader->offset() <= file_size);
  return all;
}

// A second reader that begins with the record in the middle sees the same from there on. A SELECT
// before it would be forgotten.
void RequireThatSeekingGoesOn(Format format, const std::string& path, size_t file_size,
                              const std::vector<Read>& all) {
  if (all.size() < 2) return;
  const size_t middle = all.size() / 2;
  const std::unique_ptr<RecordReader> reader = OpenReaderOf(format, path);
  if (!reader->Seek(all[middle].offset, all[middle].line)) return;
  const std::vector<Read> rest = ReadAll(reader.get(), file_size);
  VARVE_FUZZ_REQUIRE(rest.size() >= all.size() - middle);
  if (format == kCommands) return;
  VARVE_FUZZ_REQUIRE(std::equal(rest.begin(), rest.end(),
                                all.begin() + static_cast<ptrdiff_t>(middle), all.end()));
}

void RequireReadableAgain(Format format, const std::vector<Read>& all, NamedBytes* file) {
  static constexpr FileFormat kFormatOf[] = {FileFormat::kResp, FileFormat::kCsv,
                                             FileFormat::kJson};
  std::string written(TitleOf(kFormatOf[format]));
  std::vector<std::vector<std::string>> pairs;
  for (const Read& read : all) {
    if (read.wrong || read.words[0] != "SET") continue;
    int64_t expires_at_ms = 0;
    const bool expires = read.words.size() >= 5 && read.words[3] == "PXAT" &&
                         ParseRespInteger(read.words[4], &expires_at_ms) && expires_at_ms > 0;
    const size_t behind_expiry = expires ? 5 : 3;
    const bool has_metadata = read.words.size() == behind_expiry + 2 &&
                              read.words[behind_expiry] == "META" && !read.words.back().empty();
    if (read.words.size() != behind_expiry + (has_metadata ? 2 : 0)) continue;
    pairs.push_back(read.words);
    AppendRecord(kFormatOf[format], read.words[1], read.words[2],
                 expires ? static_cast<uint64_t>(expires_at_ms) : 0,
                 has_metadata ? std::string_view(read.words.back()) : std::string_view(), &written);
  }
  const std::unique_ptr<RecordReader> reader = OpenReaderOf(format, file->Set(written));
  const std::vector<Read> again = ReadAll(reader.get(), written.size());
  VARVE_FUZZ_REQUIRE(again.size() == pairs.size());
  for (size_t i = 0; i < again.size(); ++i)
    VARVE_FUZZ_REQUIRE(!again[i].wrong && again[i].words == pairs[i]);
}

void RunAofManifest(std::string_view bytes) {
  struct Directory {
    testing::TempDir directory;
    std::string manifest = directory.File("appendonly.aof.manifest");
    Directory() {
      Write("a.rdb", std::string_view("REDIS0009\xFF\0\0\0\0\0\0\0\0", 18));
      Write("a.aof", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    }
    void Write(const std::string& name, std::string_view content) const {
      std::FILE* file = std::fopen(directory.File(name).c_str(), "wb");
      VARVE_FUZZ_REQUIRE(file != nullptr);
      VARVE_FUZZ_REQUIRE(std::fwrite(content.data(), 1, content.size(), file) == content.size());
      VARVE_FUZZ_REQUIRE(std::fclose(file) == 0);
    }
  };
  static const Directory directory;
  directory.Write("appendonly.aof.manifest", bytes);
  if (const auto reader = OpenReaderOf(kAofManifest, directory.manifest)) {
    ImportRecord record;
    while (reader->Next(&record).value_or(false)) continue;
  }
}

void Run(std::string_view bytes) {
  static NamedBytes file;
  Input input(bytes);
  const auto format = static_cast<Format>(input.Byte() % kFormats);
  const std::string_view content = input.Rest();
  if (format == kAofManifest) return RunAofManifest(content);
  const std::string path = file.Set(content);
  const std::unique_ptr<RecordReader> reader = OpenReaderOf(format, path);
  VARVE_FUZZ_REQUIRE(reader != nullptr);
  const std::vector<Read> all = ReadAll(reader.get(), content.size());
  if (format == kRdb) return;
  RequireThatSeekingGoesOn(format, path, content.size(), all);
  RequireReadableAgain(format, all, &file);
}

std::string Rdb(std::string_view items) {
  // Eight zeros: without a checksum.
  return "\3REDIS0011" + std::string(items) + "\xFF" + std::string(8, '\0');
}

std::vector<std::string> Seeds() {
  using std::string_literals::operator""s;
  return {
      "\0*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
      "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
      "#TS:1700000000\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"s,
      "\0*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$4\r\nPXAT\r\n$13\r\n"
      "1699999999999\r\n*1\r\n$8\r\nFLUSHALL\r\n"s,
      "\0*6\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nEX\r\n"
      "$1\r\n9\r\n$2\r\nNX\r\n*3\r\n$4\r\nHSET\r\n$1\r\nh"s,
      "\1key,value\na,b\n\"quoted \"\"\",\"line\nbreak\"\r\n\r\nthree,co,lumns\n\"open"s,
      "\1a,\n,b\nlast,line"s,
      "\2{\"key\":\"city:1\",\"value\":\"Z\\u00fcrich \\ud83d\\ude00\"}\n"
      "{\"value_base64\":\"AAEC\",\"key\":\"k\",\"x\":[1,{\"y\":null}]}\n"s,
      "\2{}\n{\"key\":1}\n{\"key\":\"a\",\"value\":\"\\ud800\"}\n \n"
      "{\"key\":\"a\",\"value\":\"b\"} x"s,
      Rdb("\xFA\x09redis-ver\x05"
          "7.2.4\xFE\0\xFB\2\1\0\1k\1v\xFC\1\0\0\0\0\0\0\0\0\1e\1x"s),
      Rdb("\0\1k\xC0\x7B\0\1l\xC1\x39\x30\0\1m\xC2\x87\xD6\x12"
          "\0\0\1z\xC3\6\x0C\1ab\xE0\1\1\0\1n\x40\1w"s),
      Rdb("\1\1l\2\1a\1b\4\1h\1\1f\1v\2\1s\1\1m\5\1z\1\1m\0\0\0\0\0\0\xF0\x3F\3\1y\1\1m\1\x32"s),
      Rdb("\x12\1q\1\2\3abc\x0F\1t\1\x10"
          "0123456789abcdef\1x\1\1\0\0\xF7\x81\0\0\0\0\0\0\0\1\2\0\0"s),
      Rdb("\x07\1m\x81\0\0\0\0\0\0\0\1\2\5\1\7\3\0\0\0\0\5\1s\0"s),
      "\3REDIS0001\0\1k\x80\0\0\0\1v\xFD\1\0\0\0\xF8\1\xF9\2\0\1e\1x\xFF*1\r\n$4\r\nPING\r\n"s,
      "\4file a.rdb seq 1 type b\nfile a.aof seq 1 type i\n"
      "# note\nfile \"old.aof\" seq 0 type h\n"s};
}

const Announced kTarget({"import", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
