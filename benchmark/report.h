// Functions that format what the benchmarks print beyond google-benchmark's own output: figures as
// Markdown tables, and the line for history.md.
//
// Thread-safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace varve::bench {

// The figures of one repetition, by name; and all figures, by row and engine or server, one element
// for each repetition.
using Figures = std::map<std::string, double>;
using Samples = std::map<std::pair<std::string, std::string>, std::vector<Figures>>;

// Stands for a figure that was not measured.
inline constexpr const char* kNotRun = "not run";

// Returns the median (the mean of the middle two); 0 if there are no samples.
double Median(std::vector<double> samples);
// Returns the median of one figure; 0 if it was not measured.
double MedianOf(const Samples& samples, const std::string& row, const std::string& whose,
                const std::string& figure);

// Returns the rate with three digits: 12.3M, 905k, 6.83k, 512.
std::string FormatRate(double per_second);
// Returns microseconds with three digits: 0.42, 12.3, 1234.
std::string FormatMicros(double us);
// Returns a size such as 1.23 GB or 45.6 MB.
std::string FormatBytes(double bytes);
// Returns a ratio such as "0.42×"; "-" if there is nothing to compare with.
std::string FormatRatio(double ratio);

// Returns a Markdown table with aligned columns; rows[0] is the heading.
std::string MarkdownTable(const std::vector<std::vector<std::string>>& rows);

// Return the machine in words (processors, memory, kernel), and the commit of the working tree with
// a "+" if it has changes.
std::string MachineKind();
std::string Commit();

// Returns a row of history.md: date, commit, machine, command, figures.
std::string HistoryLine(const std::string& command, const std::string& figures);

// Returns whether google-benchmark prints for people. Otherwise it prints JSON or CSV to standard
// output, and our own output must go to standard error.
bool WritesToConsole(int argc, char** argv);

// Returns the command line as typed, with the program's name in place of its path.
std::string CommandLine(int argc, char** argv);

}  // namespace varve::bench
