# loom_kernel_library(<name> SOURCES files... [LIBRARIES files...] [ROOTS symbols...]
#                     [CONFIG key=value...] [LEVELS levels...])
#
# Compiles the kernels of the sources, or the ROOTS (without '@'), into lib<name>.so and its header <name>.h.
# A program that links the target <name> finds both, and needs nothing of Loom when it runs. LEVELS are those
# of loom-compile --levels, such as x86-64-v3.
function(loom_kernel_library name)
  cmake_parse_arguments(LOOM "" "" "SOURCES;LIBRARIES;ROOTS;CONFIG;LEVELS" ${ARGN})
  if(LOOM_UNPARSED_ARGUMENTS OR NOT LOOM_SOURCES)
    message(FATAL_ERROR "loom_kernel_library(${name}) takes SOURCES, LIBRARIES, ROOTS, CONFIG and "
                        "LEVELS; got '${LOOM_UNPARSED_ARGUMENTS}'")
  endif()
  loom_link_flags(flags inputs)
  if(LOOM_LEVELS)
    list(JOIN LOOM_LEVELS "," levels)
    list(APPEND flags --levels=${levels})
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${folder}/lib${name}.so ${folder}/${name}.h
    COMMAND $<TARGET_FILE:Loom::loom-compile> ${flags} --target=x86_64 --format=shared-object
            --output=${folder}/lib${name}.so --emit-header=${folder}/${name}.h
    DEPENDS ${inputs} Loom::loom-compile
    VERBATIM
    COMMENT "Compiling kernels of ${name}")
  add_custom_target(${name}_kernels DEPENDS ${folder}/lib${name}.so ${folder}/${name}.h)
  add_library(${name} SHARED IMPORTED GLOBAL)
  add_dependencies(${name} ${name}_kernels)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${folder}/lib${name}.so
                                           IMPORTED_SONAME lib${name}.so
                                           INTERFACE_INCLUDE_DIRECTORIES ${folder})
endfunction()
