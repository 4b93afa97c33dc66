#include "db/hbase/gathered_reads.h"

#include <algorithm>
#include <utility>

namespace varve {

void GatheredReads::Add(const std::string& table, std::string row, HbaseClient::Deadline deadline,
                        Done done) {
  if (context_.IsEarly(deadline)) {
    const auto alone = std::make_shared<std::vector<Read>>();
    alone->push_back({std::move(row), std::move(done)});
    return SendPart(table, alone, {0}, deadline);
  }
  std::vector<Read> full;
  {
    const absl::MutexLock lock(&mutex_);
    auto found = std::find_if(gathered_.begin(), gathered_.end(),
                              [&](const Table& each) { return each.name == table; });
    if (found == gathered_.end()) found = gathered_.insert(found, {.name = table});
    found->reads.push_back({std::move(row), std::move(done)});
    if (found->reads.size() >= context_.RowsPerRead()) full.swap(found->reads);
  }
  if (!full.empty()) Send(table, std::move(full));
}

void GatheredReads::Push() {
  std::vector<Table> gathered;
  {
    const absl::MutexLock lock(&mutex_);
    gathered.swap(gathered_);
  }
  for (Table& table : gathered) {
    if (!table.reads.empty()) Send(table.name, std::move(table.reads));
  }
}

void GatheredReads::Send(const std::string& table, std::vector<Read> reads) {
  const auto sent = std::make_shared<std::vector<Read>>(std::move(reads));
  if (sent->size() == 1) return SendPart(table, sent, {0}, context_.NewDeadline());
  std::vector<std::string> rows;
  for (const Read& read : *sent) rows.push_back(read.row);
  context_.client->SplitByRegion(table, std::move(rows),
                                 [this, table, sent](const std::vector<HbaseClient::Part>& parts) {
                                   for (const HbaseClient::Part& part : parts)
                                     SendPart(table, sent, part, context_.NewDeadline());
                                 });
}

void GatheredReads::SendPart(const std::string& table,
                             const std::shared_ptr<std::vector<Read>>& reads,
                             const HbaseClient::Part& part, HbaseClient::Deadline deadline) {
  std::vector<std::string> rows;
  for (const uint32_t number : part) rows.push_back(std::move((*reads)[number].row));
  context_.client->GetRows(table, std::move(rows), deadline,
                           [reads, part](std::vector<HbaseClient::RowValue> cells) {
                             for (size_t i = 0; i < part.size(); ++i)
                               (*reads)[part[i]].done(std::move(cells[i]));
                           });
}

}  // namespace varve
