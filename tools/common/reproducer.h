// Writes what is needed to repeat an internal failure.
#pragma once

#include <string>

namespace loom {

// Remembers the command line and installs the check handler, and one for the signals that end a
// process where no other one is. Once per process.
void install_reproducer(int argc, const char* const* argv);

// Adds a file whose copy belongs into a reproducer; with `content`, that content instead (standard
// input cannot be read twice). Any thread.
void add_reproducer_input(const std::string& path);
void add_reproducer_input(const std::string& name, std::string content);

}  // namespace loom
