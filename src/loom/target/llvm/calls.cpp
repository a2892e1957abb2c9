#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/body.h"
#include "loom/target/llvm/frame.h"

namespace loom {

using enum OpKind;

namespace {

OpId callee_of(const Module& module, OpId call) {
  return module.symbol(symbol_ref(module, call, attr_slot(FuncCall, "callee")));
}

RegionId body_of(const Module& module, OpId function) {
  return module.op_region(function, region_slot(FuncDef, "body"));
}

// LLVM passes vectors of i1 in mask registers, and fails to at odd widths: they cross as bytes.
bool is_mask(llvm::Type* type) { return type->isVectorTy() && type->getScalarSizeInBits() == 1; }

llvm::Type* across(llvm::Type* type) { return is_mask(type) ? type->getWithNewBitWidth(8) : type; }

void widen_masks(llvm::IRBuilderBase& b, std::vector<llvm::Value*>& values) {
  for (llvm::Value*& value : values) {
    if (is_mask(value->getType())) value = b.CreateZExt(value, across(value->getType()));
  }
}

// The inverse, for values that are of these types inside.
void narrow_masks(llvm::IRBuilderBase& b, std::span<llvm::Type* const> types,
                  std::vector<llvm::Value*>& values) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_mask(types[i])) values[i] = b.CreateTrunc(values[i], types[i]);
  }
}

}  // namespace

void BodyLowering::lower_functions() {
  for (const OpId function : plan_.functions) functions_[function.index()] = declare(function);
  for (const OpId function : plan_.functions) define(function);
}

// The prefix keeps a function apart from the C library's functions of the same name.
llvm::Function* BodyLowering::declare(OpId function) {
  const RegionId body = body_of(module_, function);
  std::vector<llvm::Type*> parameters;
  for (const ValueId arg : module_.args(body)) append_types(module_.type_of(arg), parameters);
  parameters.insert(parameters.end(), introduced_extents(module_, body).size(),
                    builder_.getInt64Ty());
  std::vector<llvm::Type*> results;
  for (const ValueId result :
       module_.args(module_.op_region(function, region_slot(FuncDef, "results")))) {
    append_types(module_.type_of(result), results);
  }
  for (llvm::Type*& type : parameters) type = across(type);
  for (llvm::Type*& type : results) type = across(type);
  llvm::Type* result = builder_.getVoidTy();
  if (results.size() == 1) result = results[0];
  if (results.size() > 1) result = llvm::StructType::get(builder_.getContext(), results);
  llvm::Function* const made = llvm::Function::Create(
      llvm::FunctionType::get(result, parameters, false), llvm::Function::InternalLinkage,
      "loom." + std::string(symbol_text(module_, function)), target_);
  made->setDoesNotThrow();
  const unsigned inlining = attr_slot(FuncDef, "inlining");
  if (module_.has_attr(function, inlining)) {
    made->addFnAttr(llvm::Attribute::NoInline);  // `inline` calls never reach a function
  }
  return made;
}

void BodyLowering::define(OpId function) {
  llvm::Function* const target = functions_.at(function.index());
  entry_ = llvm::BasicBlock::Create(builder_.getContext(), "", target);
  builder_.SetInsertPoint(entry_);
  begin_function(*target, symbol_text(module_, function), function);
  Components parameters;
  for (llvm::Argument& parameter : target->args()) parameters.push_back(&parameter);
  const RegionId body = body_of(module_, function);
  std::vector<llvm::Type*> types;
  for (const ValueId arg : module_.args(body)) append_types(module_.type_of(arg), types);
  narrow_masks(builder_, types, parameters);
  std::span<llvm::Value* const> rest = parameters;
  for (const ValueId arg : module_.args(body)) bind_components(arg, rest);
  for (const ValueId extent : introduced_extents(module_, body)) {
    bind(extent, rest[0]);
    rest = rest.subspan(1);
  }
  run(body);
}

void BodyLowering::emit_return(Components values) {
  widen_masks(builder_, values);
  if (values.empty()) {
    builder_.CreateRetVoid();
  } else if (values.size() == 1) {
    builder_.CreateRet(values[0]);
  } else {
    builder_.CreateAggregateRet(values.data(), static_cast<unsigned>(values.size()));
  }
}

// What the callee's introduced extents are at this call, from the types of the operands.
BodyLowering::Components BodyLowering::extents_for(OpId call, OpId callee) {
  const RegionId body = body_of(module_, callee);
  Components extents;
  for (const ValueId wanted : introduced_extents(module_, body)) {
    llvm::Value* found = nullptr;
    const auto args = module_.args(body);
    for (size_t i = 0; i < args.size() && found == nullptr; ++i) {
      const auto formal = module_.types[module_.type_of(args[i])].dims;
      const auto place = std::find(formal.begin(), formal.end(), Dim::dynamic(wanted));
      if (place == formal.end()) continue;
      const Type& actual =
          module_.types[module_.type_of(module_.operand(call, static_cast<unsigned>(i)))];
      found = extent(actual.dims[static_cast<size_t>(place - formal.begin())]);
    }
    LOOM_CHECK(found != nullptr, "an extent that no argument names");
    extents.push_back(found);
  }
  return extents;
}

void BodyLowering::open_call(OpId op) {
  const OpId callee = callee_of(module_, op);
  const RegionId body = body_of(module_, callee);
  const Components extents = extents_for(op, callee);
  const auto args = module_.args(body);
  bind_all(args, components_of(module_.operands(op)));
  for (size_t i = 0; i < args.size(); ++i) {
    inherit_scope(module_.operand(op, static_cast<unsigned>(i)), args[i]);
  }
  const std::vector<ValueId> names = introduced_extents(module_, body);
  for (size_t i = 0; i < names.size(); ++i) bind(names[i], extents[i]);
  frames_.push_back({.kind = Frame::Kind::Call, .op = op, .next = module_.region(body).first});
  if (aids_.lines != nullptr) aids_.lines->enter_call(op, callee, symbol_text(module_, callee));
}

void BodyLowering::emit_call(OpId op) {
  const OpId callee = callee_of(module_, op);
  Components operands = components_of(module_.operands(op));
  widen_masks(builder_, operands);
  const Components extents = extents_for(op, callee);
  operands.insert(operands.end(), extents.begin(), extents.end());
  llvm::Function* const function = functions_.at(callee.index());
  llvm::CallInst* const call = builder_.CreateCall(function, operands);
  Components results;
  if (const auto* const parts = llvm::dyn_cast<llvm::StructType>(function->getReturnType())) {
    for (unsigned i = 0; i < parts->getNumElements(); ++i) {
      results.push_back(builder_.CreateExtractValue(call, i));
    }
  } else if (!function->getReturnType()->isVoidTy()) {
    results.push_back(call);
  }
  std::vector<llvm::Type*> types;
  for (const ValueId result : results_of(op)) append_types(module_.type_of(result), types);
  narrow_masks(builder_, types, results);
  bind_all(results_of(op), results);
}

}  // namespace loom
