// The shape of a source file: how long its functions and how large its classes are.
//
// The scanner reads text that clang-format has laid out. It follows braces, tells a class from a
// function by the words before its brace, and so needs no compiler. It is right for the code of
// this repository, and not for all of C++.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace varve {

// One function with its body, which may lie in a class.
struct FunctionShape {
  std::string name;  // as it is written before the parenthesis, "Engine::Open"
  size_t line = 0;   // of its first word, from 0
  size_t lines = 0;  // from there to its closing brace
};

// One class, struct or union with its body. A class in it counts for itself.
struct ClassShape {
  std::string name;      // with the classes around it, "Engine::Part"
  size_t line = 0;       // of its first word, from 0
  size_t members = 0;    // data members that each object has
  size_t functions = 0;  // declared in it, without constructors, destructors and deleted ones
};

struct SourceShape {
  std::vector<FunctionShape> functions;
  std::vector<ClassShape> classes;
};

// Returns the shape of a source file that is given as its lines.
SourceShape ShapeOf(const std::vector<std::string>& lines);

// Returns the text of the lines without comments, literals and preprocessor directives, one line
// each.
std::string CodeOf(const std::vector<std::string>& lines);

}  // namespace varve
