// The engines of the lanes. None is built into this version: each answers as a kind whose engine is
// not installed does, which is no attempt and no decision about a kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::lane {

struct MissingEngine {
  std::string_view kind;   // of the request
  std::string_view what;   // that is missing
  std::string_view needs;  // what would have to be there
};

// In the order of their kinds; `hyperloom status` lists them.
const std::vector<MissingEngine>& missing_engines();

// {status: failed, error_class: not_available, error, missing}. `kind` has an entry above.
Json not_available(std::string_view kind);

}  // namespace hyperloom::lane
