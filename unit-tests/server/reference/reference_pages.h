// The pages of docs/reference, made of the program's own tables: commands, settings and metrics.
//
// Thread-safety: the functions are pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace varve::reference {

// Returns the pages of commands by the names of their files: an index, and a page for each group.
std::map<std::string, std::string> CommandPages();

// Returns the page of settings.
std::string SettingPage();

// Returns the page of the metrics that `metrics` shows, a page of /metrics in plain format. A label
// is known where the family has a sample with it.
std::string MetricPage(std::string_view metrics);

// Returns the tables of docs/scale.md: what stores provide, and which commands need it.
std::string StoreNeedTables();

}  // namespace varve::reference
