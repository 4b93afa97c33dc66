#include "server/status/survey_documents.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "util/base/json_text.h"

namespace varve {
namespace {

constexpr size_t kMostShownBytes = 200;

StatusValue SegmentPart(const SegmentSurvey& segment, bool names_keys) {
  StatusValue map = StatusValue::Map();
  map.Set("number", StatusValue::Integer(segment.number))
      .Set("bytes", StatusValue::Integer(segment.bytes))
      .Set("value_bytes", StatusValue::Integer(segment.referenced_bytes))
      .Set("records", StatusValue::Integer(segment.records))
      .Set("tombstones", StatusValue::Integer(segment.tombstones))
      .Set("range_tombstones", StatusValue::Integer(segment.range_tombstones))
      .Set("oldest", StatusValue::Integer(segment.oldest))
      .Set("newest", StatusValue::Integer(segment.newest))
      .Set("merging", StatusValue::Truth(segment.is_merging))
      .Set("damaged", StatusValue::Truth(segment.is_damaged))
      .Set("index_in_memory", StatusValue::Truth(segment.has_index));
  if (names_keys) {
    map.Set("first_namespace", StatusValue::Text(segment.first_namespace))
        .Set("first_key", StatusValue::Text(ShownKey(segment.first_key)))
        .Set("last_namespace", StatusValue::Text(segment.last_namespace))
        .Set("last_key", StatusValue::Text(ShownKey(segment.last_key)));
  }
  return map;
}

StatusValue GroupPart(const KeyGroup& group, bool names_keys) {
  StatusValue map = StatusValue::Map();
  map.Set("prefix", StatusValue::Text(ShownKey(group.prefix)))
      .Set("keys_estimate", StatusValue::Integer(group.keys))
      .Set("bytes_estimate", StatusValue::Integer(group.bytes));
  if (group.groups.empty() || !names_keys) return map;
  StatusValue list = StatusValue::List();
  for (const KeyGroup& within : group.groups) list.Add(GroupPart(within, names_keys));
  map.Set("groups", std::move(list));
  return map;
}

}  // namespace

StatusValue TreeDocument(const TreeSurvey& survey, bool names_keys) {
  StatusValue buffers = StatusValue::List();
  for (const BufferSurvey& buffer : survey.buffers) {
    buffers.Add(StatusValue::Map()
                    .Set("bytes", StatusValue::Integer(buffer.bytes))
                    .Set("records", StatusValue::Integer(buffer.records))
                    .Set("full", StatusValue::Truth(buffer.is_full)));
  }
  StatusValue levels = StatusValue::List();
  for (const LevelSurvey& level : survey.levels) {
    StatusValue runs = StatusValue::List();
    for (const RunSurvey& run : level.runs) {
      StatusValue segments = StatusValue::List();
      for (const SegmentSurvey& segment : run.segments)
        segments.Add(SegmentPart(segment, names_keys));
      runs.Add(StatusValue::Map()
                   .Set("bytes", StatusValue::Integer(run.bytes))
                   .Set("segment_count", StatusValue::Integer(run.segment_count))
                   .Set("segments", std::move(segments)));
    }
    levels.Add(StatusValue::Map().Set("runs", std::move(runs)));
  }
  StatusValue document = StatusValue::Map();
  document.Set("buffers", std::move(buffers)).Set("levels", std::move(levels));
  if (survey.merge.has_value()) {
    document.Set("merge",
                 StatusValue::Map()
                     .Set("reason", StatusValue::Text(survey.merge->reason))
                     .Set("segments", StatusValue::Integer(survey.merge->segments))
                     .Set("bytes", StatusValue::Integer(survey.merge->bytes))
                     .Set("output_level",
                          StatusValue::Integer(static_cast<uint64_t>(survey.merge->output_level)))
                     .Set("parts", StatusValue::Integer(survey.merge->parts))
                     .Set("seconds", StatusValue::Number(survey.merge->seconds)));
  }
  return document;
}

StatusValue KeysDocument(const KeyMap& map, bool names_keys) {
  StatusValue namespaces = StatusValue::List();
  for (const NamespaceKeys& space : map.namespaces) {
    StatusValue part = GroupPart(space.keys, names_keys);
    namespaces.Add(StatusValue::Map()
                       .Set("name", StatusValue::Text(space.name))
                       .Set("grouping", StatusValue::Text(ShownKey(GroupingText(space.grouping))))
                       .Set("all", std::move(part)));
  }
  StatusValue document = StatusValue::Map();
  document.Set("names_keys", StatusValue::Truth(names_keys))
      .Set("bytes_estimate", StatusValue::Integer(map.bytes))
      .Set("segment_bytes", StatusValue::Integer(map.segment_bytes))
      .Set("known_segment_bytes", StatusValue::Integer(map.known_segment_bytes))
      .Set("buffer_records", StatusValue::Integer(map.buffer_records))
      .Set("known_buffer_records", StatusValue::Integer(map.known_buffer_records))
      .Set("namespaces", std::move(namespaces));
  return document;
}

std::string ShownKey(std::string_view key) {
  std::string shown;
  const auto out = std::back_inserter(shown);
  std::string_view rest = key.substr(0, kMostShownBytes);
  while (!rest.empty()) {
    const size_t size = Utf8CharacterSize(rest);
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (size == 0 || byte < 0x20 || byte == 0x7f) {
      fmt::format_to(out, "\\x{:02x}", byte);
    } else {
      if (byte == '\\') shown += '\\';
      shown += rest.substr(0, size);
    }
    rest.remove_prefix(std::max<size_t>(size, 1));
  }
  if (key.size() > kMostShownBytes) shown += "...";
  return shown;
}

}  // namespace varve
