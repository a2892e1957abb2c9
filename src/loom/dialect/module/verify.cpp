// What the rows of module/ops.def cannot say.
#include "loom/dialect/hooks.h"

namespace loom::verify {

void module_import(VerifyContext& c, OpId op) {
  constexpr unsigned kSymbols = attr_slot(OpKind::ModuleImport, "symbols");
  const auto names = c.module.attr(op, kSymbols).ints;
  for (size_t i = 1; i < names.size(); ++i) {
    const auto text = [&](size_t k) {
      return c.module.strings.text(StringId(static_cast<uint32_t>(names[k])));
    };
    if (text(i - 1) < text(i)) continue;
    c.error(op, Diag::StructureSymbolSet,
            {{"op", "module.import"},
             {"symbol", std::string(text(i))},
             {"detail", text(i - 1) == text(i) ? "occurs twice" : "is not in ascending order"}});
    return;
  }
}

}  // namespace loom::verify
