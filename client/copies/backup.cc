#include "client/copies/backup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/copies/backup_session.h"
#include "client/copies/rate_limit.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{128} << 10;
constexpr size_t kAhead = 8;  // requests under way
// Between two looks at whether the caller has had enough.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(100);

class BackupCopier {
 public:
  BackupCopier(const BackupCopyOptions& options, BackupSession* session, BackupTarget* target,
               const BackupProgress& progress)
      : session_(*session),
        target_(*target),
        progress_(progress),
        limit_(options.bytes_per_second, RealClock()),
        piece_bytes_(limit_.PieceSize(kPieceBytes)) {}

  absl::StatusOr<BackupResult> Run() {
    VARVE_RETURN_IF_ERROR(session_.Start());
    VARVE_ASSIGN_OR_RETURN(std::vector<SealedFile> files, session_.Files());
    VARVE_ASSIGN_OR_RETURN(const BackupSource source, session_.Source());
    VARVE_RETURN_IF_ERROR(target_.Begin(source));
    result_.version = source.version;
    result_.files = files.size();
    for (const SealedFile& file : files) total_ += file.size;
    VARVE_RETURN_IF_ERROR(ShareOf(std::move(files)));
    VARVE_RETURN_IF_ERROR(Fetch());
    // The copy is read once more to verify it. The server need not hold its files for so long.
    result_.released = session_.Release();
    VARVE_ASSIGN_OR_RETURN(result_.id, target_.Seal());
    return result_;
  }

 private:
  // A place in the files that are fetched one after the other.
  struct Place {
    size_t file = 0;
    uint64_t offset = 0;
  };

  absl::Status Report() const {
    if (progress_ == nullptr || progress_(done_, total_)) return absl::OkStatus();
    return absl::CancelledError("interrupted; the incomplete copy goes");
  }

  // Leaves in files_ those that no earlier backup has.
  absl::Status ShareOf(std::vector<SealedFile> files) {
    for (SealedFile& file : files) {
      VARVE_ASSIGN_OR_RETURN(const bool is_shared, target_.Share(file.name, file.size));
      if (!is_shared) {
        files_.push_back(std::move(file));
        continue;
      }
      result_.shared_bytes += file.size;
      done_ += file.size;
      VARVE_RETURN_IF_ERROR(Report());
    }
    return absl::OkStatus();
  }

  absl::Status Fetch() {
    while (received_.file < files_.size()) {
      const bool may_request = requested_.file < files_.size() && ahead_ < kAhead;
      const absl::Duration wait = may_request ? limit_.Wait() : absl::ZeroDuration();
      if (may_request && wait == absl::ZeroDuration()) {
        RequestPiece();
      } else if (ahead_ > 0) {
        VARVE_RETURN_IF_ERROR(TakePiece());
      } else {
        absl::SleepFor(std::min(wait, kLongestSleep));
        VARVE_RETURN_IF_ERROR(Report());
      }
    }
    return absl::OkStatus();
  }

  uint64_t LengthAt(const Place& place) const {
    return std::min(piece_bytes_, files_[place.file].size - place.offset);
  }

  // Moves behind the piece. An empty file is one piece without bytes.
  void Advance(Place* place) const {
    place->offset += LengthAt(*place);
    if (place->offset == files_[place->file].size) *place = {place->file + 1, 0};
  }

  void RequestPiece() {
    const uint64_t length = LengthAt(requested_);
    session_.Request(files_[requested_.file], requested_.offset, length);
    limit_.Spend(length);
    Advance(&requested_);
    ++ahead_;
  }

  absl::Status TakePiece() {
    const SealedFile& file = files_[received_.file];
    const uint64_t length = LengthAt(received_);
    if (received_.offset == 0) VARVE_RETURN_IF_ERROR(target_.BeginFile(file.name, file.size));
    --ahead_;
    VARVE_ASSIGN_OR_RETURN(const std::string bytes,
                           session_.Receive(file, received_.offset, length));
    VARVE_RETURN_IF_ERROR(target_.Append(bytes));
    if (received_.offset + length == file.size) VARVE_RETURN_IF_ERROR(target_.EndFile());
    Advance(&received_);
    result_.new_bytes += length;
    done_ += length;
    return Report();
  }

  BackupSession& session_;
  BackupTarget& target_;
  const BackupProgress& progress_;
  RateLimit limit_;
  const uint64_t piece_bytes_;
  std::vector<SealedFile> files_;  // that are fetched
  Place requested_;                // the next piece to ask for
  Place received_;                 // the next piece to come
  size_t ahead_ = 0;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  BackupResult result_;
};

}  // namespace

absl::StatusOr<BackupResult> CopyBackup(Client* client, const BackupCopyOptions& options,
                                        BackupTarget* target, const BackupProgress& progress) {
  BackupSession session(client);
  absl::StatusOr<BackupResult> result = BackupCopier(options, &session, target, progress).Run();
  if (!result.ok()) return session.GiveUp(result.status());
  return result;
}

}  // namespace varve
