// What the benchmarks print beyond google-benchmark's own output: figures as Markdown, and the line for history.md.
#pragma once

#include <string>
#include <vector>

namespace varve::bench {

// The middle one (mean of the middle two); 0 of none.
double Median(std::vector<double> samples);

// Three digits: 12.3M, 905k, 6.83k, 512.
std::string FormatRate(double per_second);
// 1.23 GB, 45.6 MB.
std::string FormatBytes(double bytes);
// "0.42×"; "-" where there is nothing to compare with.
std::string FormatRatio(double ratio);

// A Markdown table with aligned columns; rows[0] is the heading.
std::string MarkdownTable(const std::vector<std::vector<std::string>>& rows);

// The machine in words (processors, memory, kernel), and the commit of the working tree, "+" where it has changes.
std::string MachineKind();
std::string Commit();

// One row of history.md: date, commit, machine, command, figures.
std::string HistoryLine(const std::string& command, const std::string& figures);

// Whether google-benchmark's output is for people; else it is JSON or CSV, and what we print beside it must go
// elsewhere.
bool WritesToConsole(int argc, char** argv);

// The command line as typed, with the program's path cut to its name.
std::string CommandLine(int argc, char** argv);

}  // namespace varve::bench
