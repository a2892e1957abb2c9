// Names that C and C++ take.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace loom {

// Letters, digits and '_', no digit first.
bool is_c_identifier(std::string_view name);
// A keyword of C or C++ or a name that one of them keeps for itself: a header cannot use it.
bool is_c_reserved(std::string_view name);

// An identifier like `wanted`: other characters become '_'; "" becomes "unnamed".
std::string c_name_like(std::string_view wanted);
// The same where nothing has that name yet: something is added where it is reserved or in `taken`,
// into which it goes.
std::string free_c_name(std::string_view wanted, std::set<std::string>& taken);

}  // namespace loom
