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
        [self = shared_from_this()](const std::vector<HbaseClient::RowValue>& read) {
          self->Take(read);
        });
  }

 private:
  void Take(const std::vector<HbaseClient::RowValue>& read) {
    for (const HbaseClient::RowValue& value : read) {
      if (!value.ok() || !value->has_value()) {
        values_.push_back(value);
      } else {
        values_.emplace_back(std::optional((*value)->substr(0, kMaxCellHeader)));
      }
    }
    ReadNext();
  }

  const HbaseContext& context_;
  const std::string table_;
  const std::vector<std::string> rows_;
  const HbaseClient::Deadline deadline_;
  const HbaseClient::RowsDone done_;
  std::vector<HbaseClient::RowValue> values_;
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
