#include "db/hbase/hbase_context.h"

#include <algorithm>

#include "varve/store_status.h"

namespace varve {
namespace {

class HeadersRead final : public std::enable_shared_from_this<HeadersRead> {
 public:
  HeadersRead(const HbaseContext& context, std::string table, std::vector<std::string> rows,
              HbaseClient::Deadline deadline, HbaseClient::RowsDone done)
      : context_(context),
        table_(std::move(table)),
        rows_(std::move(rows)),
        deadline_(deadline),
        done_(std::move(done)) {}

  void ReadNext() {
    if (values_.size() == rows_.size()) return done_(std::move(values_));
    const size_t end = std::min(values_.size() + context_.RowsPerRead(), rows_.size());
    std::vector<std::string> step(rows_.begin() + static_cast<ptrdiff_t>(values_.size()),
                                  rows_.begin() + static_cast<ptrdiff_t>(end));
    context_.client->GetRows(
        table_, std::move(step), deadline_,
        [self = shared_from_this()](absl::StatusOr<std::vector<std::optional<std::string>>> read) {
          self->Take(std::move(read));
        });
  }

 private:
  void Take(absl::StatusOr<std::vector<std::optional<std::string>>> read) {
    if (!read.ok()) return done_(read.status());
    for (const std::optional<std::string>& value : *read)
      values_.push_back(value ? std::optional(value->substr(0, kMaxCellHeader)) : std::nullopt);
    ReadNext();
  }

  const HbaseContext& context_;
  const std::string table_;
  const std::vector<std::string> rows_;
  const HbaseClient::Deadline deadline_;
  const HbaseClient::RowsDone done_;
  std::vector<std::optional<std::string>> values_;
};

}  // namespace

absl::Status AsStoreStatus(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
  return IsStoreUnavailable(status) ? status : StoreUnavailable(std::string(status.message()));
}

void ReadHeaders(const HbaseContext& context, std::string table, std::vector<std::string> rows,
                 HbaseClient::Deadline deadline, HbaseClient::RowsDone done) {
  std::make_shared<HeadersRead>(context, std::move(table), std::move(rows), deadline,
                                std::move(done))
      ->ReadNext();
}

absl::Status IsBeingClosed() { return absl::UnavailableError("the store is being closed"); }

}  // namespace varve
