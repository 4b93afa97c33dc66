// What the benchmarks print beyond google-benchmark's own output: figures as Markdown, and the line
// for history.md.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace varve::bench {

// What was measured once, by name, and all of that by row and whom it was measured on, one sample a
// repetition.
using Figures = std::map<std::string, double>;
using Samples = std::map<std::pair<std::string, std::string>, std::vector<Figures>>;

// In the place of a figure that there is none of.
inline constexpr const char* kNotRun = "not run";

// The middle one (mean of the middle two); 0 of none.
double Median(std::vector<double> samples);
// Of one figure; 0 where it was not measured.
double MedianOf(const Samples& samples, const std::string& row, const std::string& whose,
                const std::string& figure);

// Three digits: 12.3M, 905k, 6.83k, 512.
std::string FormatRate(double per_second);
// Microseconds with as many digits as say something: 0.42, 12.3, 1234.
std::string FormatMicros(double us);
// 1.23 GB, 45.6 MB.
std::string FormatBytes(double bytes);
// "0.42×"; "-" where there is nothing to compare with.
std::string FormatRatio(double ratio);

// A Markdown table with aligned columns; rows[0] is the heading.
std::string MarkdownTable(const std::vector<std::vector<std::string>>& rows);

// The machine in words (processors, memory, kernel), and the commit of the working tree, "+" where
// it has changes.
std::string MachineKind();
std::string Commit();

// One row of history.md: date, commit, machine, command, figures.
std::string HistoryLine(const std::string& command, const std::string& figures);

// Whether google-benchmark's output is for people; else it is JSON or CSV, and what we print beside
// it must go elsewhere.
bool WritesToConsole(int argc, char** argv);

// The command line as typed, with the program's path cut to its name.
std::string CommandLine(int argc, char** argv);

}  // namespace varve::bench
