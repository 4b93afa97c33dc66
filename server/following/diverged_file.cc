#include "server/following/diverged_file.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/changes.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

constexpr size_t kPieceSize = size_t{1} << 20;

void AppendRequest(std::initializer_list<std::string_view> words, std::string* text) {
  text->append(fmt::format("*{}\r\n", words.size()));
  for (const std::string_view word : words) {
    text->append(fmt::format("${}\r\n", word.size()));
    text->append(word).append("\r\n");
  }
}

void AppendPut(const ChangeOperation& operation, std::string* text) {
  const std::string expiry = fmt::to_string(operation.expiry_ms);
  const bool expires = operation.expiry_ms != kNoExpiry;
  const std::string& metadata = operation.metadata;
  if (expires && !metadata.empty())
    return AppendRequest({"SET", operation.key, operation.value, "PXAT", expiry, "META", metadata},
                         text);
  if (expires) return AppendRequest({"SET", operation.key, operation.value, "PXAT", expiry}, text);
  if (!metadata.empty())
    return AppendRequest({"SET", operation.key, operation.value, "META", metadata}, text);
  AppendRequest({"SET", operation.key, operation.value}, text);
}

// Appends what was done to a namespace, in words, where no request repeats it.
void AppendNote(const ChangeOperation& operation, std::string_view what, std::string* text) {
  AppendRequest({"ECHO", fmt::format("namespace {} {} {}", operation.name, what, operation.key)},
                text);
}

void AppendOperation(const ChangeOperation& operation, std::string* text) {
  switch (operation.kind) {
    case Kind::kSet:
    case Kind::kExpire:
    case Kind::kMeta:
      return AppendPut(operation, text);
    case Kind::kDelete:
    case Kind::kExpired:
    case Kind::kEvicted:
      return AppendRequest({"DEL", operation.key}, text);
    case Kind::kDeleteRange:
      return AppendRequest({"DELRANGE", fmt::format("[{}", operation.key),
                            operation.value.empty() ? "+" : fmt::format("({}", operation.value)},
                           text);
    case Kind::kFlush:
      return AppendRequest({"FLUSHDB"}, text);
    case Kind::kIngest:
      return AppendNote(operation, "took a file of sorted keys (INGEST) from", text);
    case Kind::kCreate:
      return AppendNote(operation, "was created", text);
    case Kind::kDrop:
      return AppendNote(operation, "was dropped", text);
    case Kind::kSwap:
      return AppendNote(operation, "was swapped with", text);
    case Kind::kClone:
      return AppendNote(operation, "was cloned from", text);
  }
}

bool BelongsIn(const ChangeOperation& operation) {
  return operation.kind != Kind::kCreate && operation.kind != Kind::kDrop &&
         operation.kind != Kind::kSwap && operation.kind != Kind::kClone;
}

}  // namespace

absl::StatusOr<DivergedFile> WriteDivergedFile(FileSystem* file_system,
                                               const std::string& directory, const Store& store,
                                               uint64_t history_id, SequenceNumber fork) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<ChangeIterator> changes,
                         store.NewChangeIterator(fork, {.space = std::nullopt}));
  DivergedFile diverged{
      .path = fmt::format("{}/diverged-{:016x}-{}.resp", directory, history_id, fork)};
  const std::string temporary = diverged.path + ".tmp";
  {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForWrite(temporary, /*create=*/true));
    std::string text;
    uint64_t written = 0;
    std::optional<NamespaceId> space;
    const auto write = [&]() -> absl::Status {
      VARVE_RETURN_IF_ERROR(file->Write(written, text));
      written += text.size();
      text.clear();
      return absl::OkStatus();
    };
    for (;;) {
      VARVE_ASSIGN_OR_RETURN(const bool found, changes->Next());
      if (!found) break;
      const Change& commit = changes->change();
      AppendRequest({"ECHO", fmt::format("version {} at {} ms", commit.version, commit.instant_ms)},
                    &text);
      for (const ChangeOperation& operation : commit.operations) {
        if (BelongsIn(operation) && space != operation.space) {
          space = operation.space;
          operation.space < kFirstNamedNamespace
              ? AppendRequest({"SELECT", operation.name}, &text)
              : AppendRequest({"NAMESPACE", "USE", operation.name}, &text);
        }
        AppendOperation(operation, &text);
        ++diverged.operations;
      }
      ++diverged.commits;
      if (text.size() >= kPieceSize) VARVE_RETURN_IF_ERROR(write());
    }
    VARVE_RETURN_IF_ERROR(write());
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  if (diverged.commits == 0) {
    VARVE_RETURN_IF_ERROR(file_system->Remove(temporary));
    diverged.path.clear();
    return diverged;
  }
  VARVE_RETURN_IF_ERROR(file_system->Rename(temporary, diverged.path));
  VARVE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  return diverged;
}

}  // namespace varve
