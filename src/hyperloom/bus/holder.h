// Who holds a row: "<pid>:<start time>:<ordinal>".
#pragma once

#include <string>
#include <string_view>

#include "hyperloom/bus/sqlite.h"

namespace hyperloom::bus {

// A new holder of this process. Needs the database's mutex.
std::string new_holder(Database::Impl& database);
// Whether the process that a holder names has ended. What does not read as a holder is dead.
bool is_dead(std::string_view holder);

}  // namespace hyperloom::bus
