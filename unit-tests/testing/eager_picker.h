// The default picker as if there were no bursts: tests fill small buffers one right after the other
// and want merges beside that.
#pragma once

#include <memory>
#include <optional>

#include "varve/compaction_picker.h"

namespace varve::testing {

class EagerPicker final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape& tree, const EngineOptions& options,
                                     bool) const override {
    return picker_->Pick(tree, options, /*in_burst=*/false);
  }
  double Debt(const TreeShape& tree, const EngineOptions& options) const override {
    return picker_->Debt(tree, options);
  }

 private:
  const std::shared_ptr<const CompactionPicker> picker_ = LazyLevelingPicker();
};

}  // namespace varve::testing
