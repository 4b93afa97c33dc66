#include "client/move/space_description.h"

#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace varve {
namespace {

using SpaceKind = SpaceOptions::Kind;

constexpr std::string_view kUsual = "default";
constexpr std::string_view kNone = "none";

// The fields of a map, of which an older server may lack some.
class InfoFields {
 public:
  explicit InfoFields(const Reply& reply) : reply_(reply) {}

  std::string Text(std::string_view name, std::string_view missing = "") const {
    const Reply* const field = Find(name);
    return field == nullptr ? std::string(missing) : field->text;
  }
  uint64_t Number(std::string_view name) const {
    const Reply* const field = Find(name);
    return field == nullptr ? 0 : static_cast<uint64_t>(field->integer);
  }

 private:
  const Reply* Find(std::string_view name) const {
    for (size_t i = 0; i + 1 < reply_.elements.size(); i += 2)
      if (reply_.elements[i].text == name) return &reply_.elements[i + 1];
    return nullptr;
  }

  const Reply& reply_;
};

void AddQuota(const InfoFields& fields, SpaceDescription* description) {
  SpaceOptions quota{.kind = SpaceKind::kQuota, .words = {}};
  const uint64_t keys = fields.Number("maxkeys"), bytes = fields.Number("maxbytes");
  if (keys != 0) quota.words.insert(quota.words.end(), {"MAXKEYS", fmt::to_string(keys)});
  if (bytes != 0) quota.words.insert(quota.words.end(), {"MAXBYTES", fmt::to_string(bytes)});
  if (quota.words.empty()) return;
  if (const std::string order = fields.Text("evict", kNone); order != kNone) {
    const std::string evictable = fields.Text("evictable", "all");
    quota.words.insert(quota.words.end(), {"EVICT", order, "EVICTABLE", evictable});
  }
  description->options.push_back(std::move(quota));
}

}  // namespace

absl::StatusOr<SpaceDescription> ParseSpaceInfo(const Reply& reply) {
  const bool is_map = reply.type == Reply::Type::kArray || reply.type == Reply::Type::kMap;
  if (!is_map || reply.elements.empty() || reply.elements.size() % 2 != 0)
    return absl::DataLossError("the server's reply to NAMESPACE INFO makes no sense");
  const InfoFields fields(reply);
  SpaceDescription description;
  description.grouping = fields.Text("together") == "yes" ? "together" : fields.Text("group");
  description.usual_expiry_ms = fields.Number("default_expiry_ms");
  constexpr std::pair<std::string_view, std::string_view> kStorage[] = {{"sync", "SYNC"},
                                                                        {"compress", "COMPRESS"}};
  for (const auto& [field, option] : kStorage) {
    if (std::string value = fields.Text(field, kUsual); value != kUsual)
      description.options.push_back({SpaceKind::kStorage, {std::string(option), std::move(value)}});
  }
  if (const uint64_t size = fields.Number("value_separation_size"); size != 0)
    description.options.push_back({SpaceKind::kStorage, {"VALUESIZE", fmt::to_string(size)}});
  if (std::string keep = fields.Text("keep", kUsual); keep != kUsual) {
    description.options.push_back(
        {SpaceKind::kMeaning,
         {"KEEP", std::move(keep), "KEEPBYTES", fmt::to_string(fields.Number("keep_bytes"))}});
  }
  AddQuota(fields, &description);
  return description;
}

}  // namespace varve
