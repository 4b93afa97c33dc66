#include "server/following/store_copy.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/file_checksum.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kPieceSize = uint64_t{1} << 20;
// Pieces that are asked for before the first of them is here.
constexpr uint64_t kAhead = 4;

class Copying {
 public:
  Copying(Client* client, const StoreCopyOptions& options, IncomingStore* incoming)
      : client_(*client), options_(options), incoming_(*incoming) {}

  absl::StatusOr<StoreCopied> Run() {
    VARVE_RETURN_IF_ERROR(incoming_.Begin());
    VARVE_ASSIGN_OR_RETURN(const Reply reply,
                           client_.Call({{"REPLICA", "COPY", options_.id}}, WhenLost::kReport));
    VARVE_ASSIGN_OR_RETURN(copied_.copy, ParseCopy(reply));
    for (const CopyFile& file : copied_.copy.files) total_ += file.size;
    options_.progress(0, total_);
    for (const CopyFile& file : copied_.copy.files) VARVE_RETURN_IF_ERROR(Take(file));
    return std::move(copied_);
  }

 private:
  absl::Status Take(const CopyFile& file) {
    VARVE_ASSIGN_OR_RETURN(const bool is_shared, Share(file));
    if (is_shared) {
      copied_.shared_bytes += file.size;
      Advance(file.size);
      return absl::OkStatus();
    }
    VARVE_RETURN_IF_ERROR(incoming_.BeginFile(file.name));
    VARVE_ASSIGN_OR_RETURN(const uint64_t checksum, Fetch(file));
    VARVE_RETURN_IF_ERROR(incoming_.EndFile());
    VARVE_ASSIGN_OR_RETURN(const std::string expected, ChecksumAt(file));
    if (fmt::format("{:016x}", checksum) != expected) {
      return absl::DataLossError(
          fmt::format("{} of the primary came damaged: another copy is taken", file.name));
    }
    return absl::OkStatus();
  }

  // Takes the file from this server's own store if that has it.
  absl::StatusOr<bool> Share(const CopyFile& file) {
    const auto own =
        options_.file_system->OpenForRead(fmt::format("{}/{}", options_.store, file.name));
    if (!own.ok() || file.name == "MANIFEST") return false;
    const absl::StatusOr<uint64_t> size = (*own)->Size();
    if (!size.ok() || *size != file.size) return false;
    FileChecksum checksum;
    std::string bytes(kPieceSize, '\0');
    for (uint64_t offset = 0; offset < file.size;) {
      if (options_.stop->load()) return absl::CancelledError("the copy was given up");
      const absl::StatusOr<size_t> read = (*own)->Read(offset, bytes.size(), bytes.data());
      if (!read.ok() || *read == 0) return false;
      checksum.Add(std::string_view(bytes).substr(0, *read));
      offset += *read;
    }
    VARVE_ASSIGN_OR_RETURN(const std::string expected, ChecksumAt(file));
    if (fmt::format("{:016x}", checksum.value()) != expected) return false;
    return incoming_.Share(file.name).ok();
  }

  absl::StatusOr<std::string> ChecksumAt(const CopyFile& file) {
    VARVE_ASSIGN_OR_RETURN(
        const Reply reply,
        client_.Call({{"REPLICA", "CHECKSUM", options_.id, file.name}}, WhenLost::kReport));
    return reply.text;
  }

  // Returns the checksum of what came.
  absl::StatusOr<uint64_t> Fetch(const CopyFile& file) {
    FileChecksum checksum;
    uint64_t asked = 0;
    for (uint64_t here = 0; here < file.size;) {
      for (; asked < file.size && asked - here < kAhead * kPieceSize; asked += kPieceSize) {
        VARVE_RETURN_IF_ERROR(client_.Send({{"REPLICA", "FETCH", options_.id, file.name,
                                             fmt::to_string(asked), fmt::to_string(kPieceSize)}}));
      }
      VARVE_ASSIGN_OR_RETURN(const Reply reply, client_.Receive());
      if (reply.is_error()) return StatusOfError(reply);
      if (reply.text.size() != std::min(kPieceSize, file.size - here)) {
        return absl::DataLossError(
            fmt::format("{} of the primary is shorter than the {} bytes "
                        "that it told",
                        file.name, file.size));
      }
      if (options_.stop->load()) return absl::CancelledError("the copy was given up");
      VARVE_RETURN_IF_ERROR(incoming_.Append(reply.text));
      checksum.Add(reply.text);
      here += reply.text.size();
      copied_.sent_bytes += reply.text.size();
      Advance(reply.text.size());
    }
    return checksum.value();
  }

  void Advance(uint64_t bytes) {
    done_ += bytes;
    options_.progress(done_, total_);
  }

  Client& client_;
  const StoreCopyOptions& options_;
  IncomingStore& incoming_;
  StoreCopied copied_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

absl::StatusOr<StoreCopied> CopyStore(Client* client, const StoreCopyOptions& options,
                                      IncomingStore* incoming) {
  absl::StatusOr<StoreCopied> copied = Copying(client, options, incoming).Run();
  if (!copied.ok()) incoming->Abandon();
  // Where replies are still under way, the primary's own patience ends the copy.
  if (copied.ok()) (void)client->Call({{"REPLICA", "RELEASE", options.id}}, WhenLost::kReport);
  return copied;
}

}  // namespace varve
