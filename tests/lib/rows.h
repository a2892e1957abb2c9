// How each kernel of lib/ is launched with random shapes and numbers.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "inputs.h"
#include "pair.h"

namespace loom::lib {

using MakeLaunch = std::function<Launch(Inputs&)>;
using Rows = std::map<std::string, MakeLaunch, std::less<>>;

void add_array_rows(Rows& rows);    // elementwise, activations, casts, transposition, tokens
void add_row_rows(Rows& rows);      // reductions, norms, softmax, selection
void add_product_rows(Rows& rows);  // of matrices and vectors
void add_attention_rows(Rows& rows);

}  // namespace loom::lib
