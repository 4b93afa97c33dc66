// The writer of metrics: Prometheus' text format 0.0.4, and OpenMetrics 1.0.
//
// A family is one metric with its samples. Names are given with their unit and without the endings
// `_total` of counters and `_info` of infos, which the writer adds where each format has them.
//
// Thread-safety: an object belongs to one thread.
// Invariants: samples follow the family that they belong to.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "varve/store_observation.h"

namespace varve {

class MetricsText {
 public:
  enum class Format { kPlain, kOpenMetrics };
  enum class Type { kCounter, kGauge, kHistogram, kInfo };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  explicit MetricsText(Format format) : format_(format) {}

  // Begins a family. `unit`: the end of the name that is its unit, such as "seconds"; empty: none.
  void Family(std::string_view name, Type type, std::string_view unit, std::string_view help);
  // Add a sample of the family.
  void Sample(Labels labels, uint64_t value);
  void Sample(Labels labels, double value);
  void Histogram(Labels labels, const DurationCounts& counts);
  // Begins a family and adds its only sample, without labels.
  template <typename Value>
  void Only(std::string_view name, Type type, std::string_view unit, std::string_view help,
            Value value) {
    Family(name, type, unit, help);
    Sample({}, value);
  }

  // Returns the whole text.
  std::string Take();
  static std::string_view ContentType(Format format);

 private:
  // Writes a sample's line; `value` is its text.
  void Line(std::string_view ending, Labels labels, std::string_view bound, std::string_view value);
  std::string_view Ending() const;

  const Format format_;
  std::string name_;
  Type type_ = Type::kGauge;
  std::string text_;
};

}  // namespace varve
