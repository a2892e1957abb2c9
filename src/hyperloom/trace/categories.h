// What kind of work a kernel does, by its name.
#pragma once

#include <string_view>

namespace hyperloom::trace {

// Of categories.def, "Communication" for collectives, else "Others".
std::string_view category_of(std::string_view kernel);

// Whether the words of the name (split at what is no letter or digit, and at capitals) say that it
// works over several devices: nccl, rccl, all reduce, all gather, reduce scatter, all to all, cross
// device reduce. A plain reduction or a broadcast does not.
bool is_collective_name(std::string_view kernel);

}  // namespace hyperloom::trace
