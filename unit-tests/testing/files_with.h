// Looks into the files of a directory for bytes that should not be there any more.
//
// Thread-safety: stateless functions.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace varve::testing {

// Returns the names of the files in the directory that hold the bytes, each with a space behind it.
inline std::string FilesWith(const std::string& directory, const std::string& bytes) {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream contents;
    contents << file.rdbuf();
    if (contents.str().find(bytes) != std::string::npos)
      names += entry.path().filename().string() + " ";
  }
  return names;
}

}  // namespace varve::testing
