// Time files: what is read ascends, and written anew it reads the same.
//
//   input = [ how: 1; bit 0: the rest is the whole file, else its marks, of 16 bytes each, in
//   blocks under right checksums ][ rest ]
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "db/format/file_names.h"
#include "db/history/time_file.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "unit-tests/testing/memory_file_system.h"
#include "util/base/coding.h"

namespace varve::fuzz {
namespace {

constexpr uint64_t kNumber = 7;
constexpr size_t kMarkSize = 16;

TimeFilePlace Written(std::string_view bytes, testing::MemoryFileSystem* files) {
  std::vector<TimeMark> marks;
  for (; bytes.size() >= kMarkSize; bytes.remove_prefix(kMarkSize))
    marks.push_back({DecodeFixed64(bytes.data()), DecodeFixed64(bytes.data() + 8)});
  TimeFilePlace place = CreateTimeFile(files, "d", kNumber, {}).value();
  for (size_t at = 0; at < marks.size(); at += 3) {
    place = AppendToTimeFile(
                files, "d", place,
                absl::MakeConstSpan(marks).subspan(at, std::min(marks.size() - at, size_t{3})))
                .value();
  }
  return place;
}

void Run(std::string_view input) {
  Input parts(input);
  const bool whole = (parts.Byte() & 1) != 0;
  const std::string_view rest = parts.Rest();
  testing::MemoryFileSystem::Files given;
  if (whole) given[TimeFilePath("d", kNumber)] = std::string(rest);
  testing::MemoryFileSystem files(given);
  const TimeFilePlace place = whole ? TimeFilePlace{kNumber, rest.size()} : Written(rest, &files);
  const absl::StatusOr<std::vector<TimeMark>> marks = ReadTimeFile(&files, "d", place);
  if (!marks.ok()) {
    VARVE_FUZZ_REQUIRE(absl::IsDataLoss(marks.status()) ||
                       absl::IsFailedPrecondition(marks.status()));
    return;
  }
  for (size_t i = 1; i < marks->size(); ++i) {
    VARVE_FUZZ_REQUIRE((*marks)[i - 1].first < (*marks)[i].first &&
                       (*marks)[i - 1].instant_ms < (*marks)[i].instant_ms);
  }
  const TimeFilePlace again = CreateTimeFile(&files, "d", kNumber + 1, *marks).value();
  VARVE_FUZZ_REQUIRE(ReadTimeFile(&files, "d", again).value() == *marks);
}

std::vector<std::string> Seeds() {
  std::string marks;
  for (uint64_t i = 1; i <= 7; ++i) {
    PutFixed64(&marks, i * 10);
    PutFixed64(&marks, 1'700'000'000'000 + i * 1'000);
  }
  testing::MemoryFileSystem files;
  Written(marks, &files);
  return {'\0' + marks, '\1' + files.files().at(TimeFilePath("d", kNumber))};
}

const Announced kTarget({"time_file", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
