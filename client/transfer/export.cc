#include "client/transfer/export.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/client.h"
#include "client/console/input_file.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "client/console/progress.h"
#include "client/transfer/formats.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kWriteBytes = 1u << 20;

class Exporter {
 public:
  Exporter(const CommandLine& line, FileFormat format)
      : line_(line), format_(format), path_(line.words[1]) {
    if (line.words.size() == 4) {
      min_ = line.words[2];
      max_ = line.words[3];
    }
  }
  ~Exporter() {
    if (descriptor_ >= 0 && path_ != "-") close(descriptor_);
  }

  absl::Status Run() {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(line_.connection));
    VARVE_RETURN_IF_ERROR(OpenFile());
    Progress progress("exporting", 0, line_.progress);
    progress.Begin();  // the server may take a while to count
    absl::Status status = ExportAll(client.get(), &progress);
    if (const absl::Status written = WriteOut(); status.ok()) status = written;
    if (status.ok() && path_ != "-" && fsync(descriptor_) != 0)
      status = IoError(errno, "fsync", path_);
    progress.Finish();
    const double seconds = progress.elapsed().count();
    fmt::print(stderr, "exported {} keys in {:.1f} s, {:.0f}/s\n", keys_, seconds,
               static_cast<double>(keys_) / (seconds + 0.001));
    if (parts_ > 1)
      fmt::print(stderr, "the connection was lost: these are {} snapshots, one behind the other\n",
                 parts_);
    if (!status.ok() && path_ != "-") {
      return absl::Status(status.code(),
                          fmt::format("{}; --resume goes on behind the last key in {}",
                                      std::string(status.message()), path_));
    }
    return status;
  }

 private:
  // A record of the file that is there.
  struct Seen {
    uint64_t offset;
    std::string key;
  };

  absl::Status OpenFile() {
    if (path_ == "-") {
      descriptor_ = STDOUT_FILENO;
      out_ = TitleOf(format_);
      return absl::OkStatus();
    }
    if (line_.resume) return OpenAgain();
    descriptor_ = open(path_.c_str(),
                       O_WRONLY | O_CREAT | O_CLOEXEC | (line_.force ? O_TRUNC : O_EXCL), 0600);
    if (descriptor_ < 0 && errno == EEXIST) {
      return absl::AlreadyExistsError(fmt::format(
          "{}: is there already; --force replaces it, --resume goes on with it", path_));
    }
    if (descriptor_ < 0) return IoError(errno, "create", path_);
    out_ = TitleOf(format_);
    return absl::OkStatus();
  }

  // Goes on behind the last key but one: the last record may be cut in a way that can't be seen.
  // FailedPrecondition: this is no file of export's.
  absl::Status OpenAgain() {
    VARVE_RETURN_IF_ERROR(CheckBeginning());
    VARVE_ASSIGN_OR_RETURN(OpenedReader opened, OpenReader(format_, path_, false));
    std::optional<Seen> last, before_last;
    ImportRecord record;
    while (true) {
      const absl::StatusOr<bool> found = opened.reader->Next(&record);
      if (!found.ok() && !absl::IsDataLoss(found.status())) return found.status();
      if (!found.ok() || !*found)
        break;  // a torn end, such as zeros after a power failure, is cut off like a short one
      before_last = std::exchange(
          last, Seen{record.offset, std::string(record.words.size() > 1 ? record.words[1] : "")});
      if (!record.wrong.empty()) break;  // cut here
    }
    has_last_key_ = before_last.has_value();
    if (has_last_key_) {
      last_key_ = before_last->key;
    } else {
      out_ = TitleOf(format_);
    }
    const uint64_t end = has_last_key_ ? last->offset : 0;
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) return IoError(errno, "open", path_);
    if (ftruncate(descriptor_, static_cast<off_t>(end)) != 0)
      return IoError(errno, "truncate", path_);
    if (lseek(descriptor_, 0, SEEK_END) < 0) return IoError(errno, "seek", path_);
    return absl::OkStatus();
  }

  // Whether the file begins as every export does, so that nothing else is cut off and written over.
  absl::Status CheckBeginning() const {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> input, InputFile::Open(path_));
    VARVE_ASSIGN_OR_RETURN(const std::string_view head, input->Peek(kBeginningSize));
    if (MayBeExported(format_, head)) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "{}: was not written by export --format={}; --force replaces it", path_, NameOf(format_)));
  }

  absl::Status ExportAll(Client* client, Progress* progress) {
    const Interrupt interrupt;
    Client::PairSink sink;
    absl::Status written;
    sink.begin = [&](uint64_t pairs) { progress->set_total(keys_ + pairs); };
    std::string metadata;
    sink.metadata = [&](std::string&& bytes) { metadata = std::move(bytes); };
    sink.pair = [&](std::string&& key, std::string&& value, uint64_t expires_at_ms) {
      bytes_ += key.size() + value.size() + metadata.size();
      ++keys_;
      AppendRecord(format_, key, value, expires_at_ms, metadata, &out_);
      metadata.clear();
      last_key_ = std::move(key);
      has_last_key_ = true;
      if (out_.size() >= kWriteBytes) written = WriteOut();
      progress->Update(keys_, keys_, bytes_);
      return written.ok() && !interrupt.happened();
    };
    while (true) {
      const uint64_t before = keys_;
      ++parts_;
      RangeQuery query;
      query.with_expiry = query.with_metadata = true;
      metadata.clear();
      if (line_.query.limit >= 0) query.limit = line_.query.limit - static_cast<int64_t>(keys_);
      const std::string min = has_last_key_ ? "(" + last_key_ : min_;
      const absl::Status status = client->StreamRange(min, max_, query, sink);
      if (!written.ok()) return written;
      if (interrupt.happened()) return absl::CancelledError("interrupted");
      // Lost on the way: on behind the last key, as long as that gets anywhere.
      if (!absl::IsUnavailable(status) || keys_ == before) return status;
    }
  }

  absl::Status WriteOut() {
    std::string_view rest = out_;
    while (!rest.empty()) {
      const ssize_t written = write(descriptor_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return IoError(errno, "write", path_);
      rest.remove_prefix(static_cast<size_t>(written));
    }
    out_.clear();
    return absl::OkStatus();
  }

  const CommandLine& line_;
  const FileFormat format_;
  const std::string path_;
  std::string min_ = "-";
  std::string max_ = "+";
  int descriptor_ = -1;
  std::string out_;
  bool has_last_key_ = false;
  std::string last_key_;
  uint64_t keys_ = 0;
  uint64_t bytes_ = 0;
  int parts_ = 0;
};

}  // namespace

int RunExport(const CommandLine& line) {
  // What is in the file matters only to --resume; a name decides how a new one is written.
  const absl::StatusOr<FileFormat> format = ChooseFormat(line.format, line.words[1]);
  if (!format.ok()) return Fail(format.status());
  if (*format == FileFormat::kRedis)
    return Fail(absl::InvalidArgumentError("export writes resp, csv or json"));
  const absl::Status status = Exporter(line, *format).Run();
  return status.ok() ? kDone : Fail(status);
}

}  // namespace varve
