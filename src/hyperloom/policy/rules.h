// The rules, as functions.
#pragma once

#include "hyperloom/policy/rule.h"

namespace hyperloom::policy {

#define HL_RULE(function) \
  Objection rule_##function(const Intent& intent, const Situation& situation);
#include "hyperloom/policy/rules.def"
#undef HL_RULE

}  // namespace hyperloom::policy
