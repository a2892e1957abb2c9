#include "loom/target/x86/machine_code.h"

#include <fmt/format.h>
#include <llvm-c/Target.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "loom/target/x86/object_file.h"

namespace loom {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// The first row whose prefix fits a mnemonic (without the `v` of AVX) says what it does.
struct MnemonicClass {
  std::string_view prefix;
  std::string_view name;
};
constexpr MnemonicClass kByPrefix[] = {
    {"push", "stack"},          {"pop", "stack"},          {"popcnt", "integer"},
    {"fmadd", "multiply_add"},  {"fmsub", "multiply_add"}, {"fnmadd", "multiply_add"},
    {"fnmsub", "multiply_add"}, {"cvt", "convert"},        {"mov", "move"},
    {"gather", "gather"},       {"pgather", "gather"},     {"scatter", "scatter"},
    {"pscatter", "scatter"},    {"shuf", "shuffle"},       {"pshuf", "shuffle"},
    {"perm", "shuffle"},        {"unpck", "shuffle"},      {"punpck", "shuffle"},
    {"pack", "shuffle"},        {"broadcast", "shuffle"},  {"pbroadcast", "shuffle"},
    {"insert", "shuffle"},      {"pinsr", "shuffle"},      {"extract", "shuffle"},
    {"pextr", "shuffle"},       {"blend", "shuffle"},      {"pblend", "shuffle"},
    {"palign", "shuffle"},      {"align", "shuffle"},      {"prefetch", "prefetch"},
    {"pext", "integer"},        {"pdep", "integer"},       {"ldmxcsr", "control"},
    {"stmxcsr", "control"},     {"zeroupper", "control"},  {"zeroall", "control"},
};

struct AccessWidth {
  std::string_view word;  // as the Intel syntax has it before " ptr"
  uint32_t bytes;
};
constexpr AccessWidth kWidths[] = {{"zmmword", 64}, {"ymmword", 32}, {"xmmword", 16}, {"tbyte", 10},
                                   {"qword", 8},    {"dword", 4},    {"word", 2},     {"byte", 1}};

// A disassembler and what it needs.
struct Decoder {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;

  bool open(std::string& error);
  bool decode(llvm::ArrayRef<uint8_t> bytes, uint64_t address, MachineFunction& into,
              std::string& error) const;
  void add(const llvm::MCInst& instruction, uint64_t address, MachineFunction& into) const;
  uint32_t widest_vector(const llvm::MCInst& instruction) const;
};

bool Decoder::open(std::string& error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
  });
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) return false;
  const llvm::Triple triple(kTriple);
  registers.reset(target->createMCRegInfo(kTriple));
  assembly.reset(target->createMCAsmInfo(*registers, kTriple, llvm::MCTargetOptions()));
  // Decoding looks at the mode alone, so every instruction is known whatever the processor.
  subtarget.reset(target->createMCSubtargetInfo(kTriple, "", ""));
  instructions.reset(target->createMCInstrInfo());
  context =
      std::make_unique<llvm::MCContext>(triple, assembly.get(), registers.get(), subtarget.get());
  disassembler.reset(target->createMCDisassembler(*subtarget, *context));
  printer.reset(target->createMCInstPrinter(triple, 1, *assembly, *instructions, *registers));
  if (disassembler && printer) return true;
  error = "there is no disassembler for x86-64";
  return false;
}

uint32_t Decoder::widest_vector(const llvm::MCInst& instruction) const {
  uint32_t bits = 0;
  for (const llvm::MCOperand& operand : instruction) {
    if (!operand.isReg()) continue;
    const llvm::StringRef name = registers->getName(operand.getReg());
    if (name.starts_with("XMM")) bits = std::max(bits, 128u);
    if (name.starts_with("YMM")) bits = std::max(bits, 256u);
    if (name.starts_with("ZMM")) bits = std::max(bits, 512u);
  }
  return bits;
}

std::string_view float_suffix(std::string_view mnemonic) {
  return mnemonic.size() > 3 ? mnemonic.substr(mnemonic.size() - 2) : std::string_view();
}

bool is_packed(std::string_view mnemonic) {
  const std::string_view suffix = float_suffix(mnemonic);
  return suffix == "ps" || suffix == "pd" || suffix == "ph" || mnemonic.starts_with('p');
}

// What an instruction that neither branches nor calls does; `vector`: it has a vector register.
std::string_view classify(std::string_view mnemonic, bool vector) {
  for (const MnemonicClass& row : kByPrefix) {
    if (mnemonic.starts_with(row.prefix)) return row.name;
  }
  if (!vector) return "integer";
  const std::string_view suffix = float_suffix(mnemonic);
  if (suffix == "ss" || suffix == "sd" || suffix == "sh") return "float";
  if (suffix == "ps" || suffix == "pd" || suffix == "ph") return "vector_float";
  if (mnemonic.ends_with("comiss") || mnemonic.ends_with("comisd")) return "float";
  return "vector_integer";
}

void Decoder::add(const llvm::MCInst& instruction, uint64_t address, MachineFunction& into) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printer->printInst(&instruction, address, "", *subtarget, stream);
  stream.flush();
  const size_t begin = std::min(text.find_first_not_of("\t "), text.size());
  const size_t end = std::min(text.find_first_of("\t ", begin), text.size());
  const std::string_view mnemonic = std::string_view(text).substr(begin, end - begin);
  if (mnemonic == "nop" || mnemonic == "int3" || mnemonic.starts_with("data16")) return;
  ++into.instructions;
  const llvm::MCInstrDesc& desc = instructions->get(instruction.getOpcode());
  const uint32_t vector = widest_vector(instruction);
  // A mnemonic of AVX is the older one behind a `v`.
  const std::string_view plain =
      vector != 0 && mnemonic.starts_with('v') ? mnemonic.substr(1) : mnemonic;
  std::string_view does = "branch";
  if (desc.isReturn()) {
    does = "return";
  } else if (desc.isCall()) {
    does = "call";
  } else if (!desc.isBranch()) {
    does = classify(plain, vector != 0);
  }
  ++into.mix[std::string(does)];
  const bool computes = does != "move" && vector != 0;
  if (computes && is_packed(plain)) ++into.vectors[vector];
  for (const AccessWidth& width : kWidths) {
    const size_t at = text.find(std::string(width.word) + " ptr");
    // `word` ends the other names, too.
    if (at == std::string::npos ||
        (at > 0 && std::isalpha(static_cast<unsigned char>(text[at - 1]))))
      continue;
    if (desc.mayLoad()) ++into.loads[width.bytes];
    if (desc.mayStore()) ++into.stores[width.bytes];
    break;
  }
}

bool Decoder::decode(llvm::ArrayRef<uint8_t> bytes, uint64_t address, MachineFunction& into,
                     std::string& error) const {
  for (uint64_t at = 0; at < bytes.size();) {
    llvm::MCInst instruction;
    uint64_t size = 0;
    const auto status = disassembler->getInstruction(instruction, size, bytes.slice(at),
                                                     address + at, llvm::nulls());
    if (status != llvm::MCDisassembler::Success || size == 0) {
      error = fmt::format("byte {} of '{}' begins no instruction", at, into.name);
      return false;
    }
    add(instruction, address + at, into);
    at += size;
  }
  return true;
}

}  // namespace

std::optional<std::vector<MachineFunction>> read_machine_code(std::string_view object,
                                                              std::string& error) {
  const auto parsed = open_object(object, error);
  if (!parsed) return std::nullopt;
  if (parsed->getArch() != llvm::Triple::x86_64) {
    error = "it is not for x86-64";
    return std::nullopt;
  }
  Decoder decoder;
  if (!decoder.open(error)) return std::nullopt;
  struct Place {
    uint64_t section;
    uint64_t address;
    MachineFunction function;
  };
  std::vector<Place> found;
  // ELFObjectFile.h would bring a header along that Clang does not take as C++23.
  for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(*parsed)) {
    auto type = symbol.getType();
    if (!type) return failed(type.takeError(), error);
    if (*type != llvm::object::SymbolRef::ST_Function || size == 0) continue;
    auto name = symbol.getName();
    if (!name) return failed(name.takeError(), error);
    auto section = symbol.getSection();
    if (!section) return failed(section.takeError(), error);
    if (*section == parsed->section_end()) continue;
    auto content = (*section)->getContents();
    if (!content) return failed(content.takeError(), error);
    auto address = symbol.getAddress();
    if (!address) return failed(address.takeError(), error);
    const uint64_t begin = *address - (*section)->getAddress();
    if (begin > content->size() || size > content->size() - begin) {
      error = fmt::format("'{}' is outside of its section", name->str());
      return std::nullopt;
    }
    MachineFunction function;
    function.name = name->str();
    function.bytes = size;
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(content->data()) + begin,
                                        size);
    if (!decoder.decode(bytes, *address, function, error)) return std::nullopt;
    found.push_back({(*section)->getIndex(), *address, std::move(function)});
  }
  std::ranges::stable_sort(found, [](const Place& a, const Place& b) {
    return std::pair(a.section, a.address) < std::pair(b.section, b.address);
  });
  std::vector<MachineFunction> functions;
  functions.reserve(found.size());
  for (Place& place : found) functions.push_back(std::move(place.function));
  return functions;
}

}  // namespace loom
