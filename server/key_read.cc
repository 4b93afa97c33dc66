#include "server/key_read.h"

namespace varve {
namespace {

std::optional<ReadResult> Read(CommandContext& context, const ReadOptions& options, std::string_view key,
                               std::string* value) {
  const absl::StatusOr<ReadResult> read = context.store.Get(options, key, value);
  if (!read.ok()) {
    context.Fail(read.status());
    return std::nullopt;
  }
  context.DependOn(read->gate);
  context.CountLookup(read->found);
  return *read;
}

}  // namespace

std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key, std::string* value) {
  const std::optional<ReadResult> read = Read(context, GatedRead(), key, value);
  if (read && !read->found) value->clear();
  return read;
}

std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key) {
  ReadOptions options = GatedRead();
  options.without_value = true;
  std::string none;
  return Read(context, options, key, &none);
}

}  // namespace varve
