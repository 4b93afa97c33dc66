#include "server/following/diverged_file.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/namespace.h"
#include "varve/replicated_changes.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

constexpr size_t kDivergedPiece = size_t{1} << 20;

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

// Makes the text of commits.
class CommitWriter {
 public:
  explicit CommitWriter(DivergedFile* counts) : counts_(*counts) {}

  void Add(const Change& commit) {
    AppendRequest({"ECHO", fmt::format("version {} at {} ms", commit.version, commit.instant_ms)},
                  &text_);
    for (const ChangeOperation& operation : commit.operations) {
      if (BelongsIn(operation) && space_ != operation.space) {
        space_ = operation.space;
        operation.space < kFirstNamedNamespace
            ? AppendRequest({"SELECT", operation.name}, &text_)
            : AppendRequest({"NAMESPACE", "USE", operation.name}, &text_);
      }
      AppendOperation(operation, &text_);
      ++counts_.operations;
    }
    ++counts_.commits;
  }
  const std::string& text() const { return text_; }
  void Clear() { text_.clear(); }

 private:
  DivergedFile& counts_;
  std::string text_;
  std::optional<NamespaceId> space_;  // where the requests that follow belong
};

}  // namespace

absl::StatusOr<DivergedFile> WriteDivergedFile(FileSystem* file_system,
                                               const std::string& directory, ReplicatedStore* store,
                                               uint64_t history_id, SequenceNumber fork) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<ReplicaFeed> feed, store->NewReplicaFeed(fork));
  DivergedFile diverged{
      .path = fmt::format("{}/diverged-{:016x}-{}.resp", directory, history_id, fork)};
  const std::string temporary = diverged.path + ".tmp";
  {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForWrite(temporary, /*create=*/true));
    CommitWriter writer(&diverged);
    uint64_t written = 0;
    for (;;) {
      VARVE_ASSIGN_OR_RETURN(const std::string blocks, feed->Next(kDivergedPiece));
      if (blocks.empty()) break;
      VARVE_RETURN_IF_ERROR(
          ForEachReplicated(blocks, [&](const Change& commit) { writer.Add(commit); }));
      VARVE_RETURN_IF_ERROR(file->Write(written, writer.text()));
      written += writer.text().size();
      writer.Clear();
    }
    if (feed->position() < store->Identity().newest)
      return absl::InternalError("the last commits are not on disk");
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
