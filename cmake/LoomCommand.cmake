# loom_command_binary(<name> SOURCES files... [LIBRARIES files...] [ROOTS symbols...]
#                     [CONFIG key=value...] [SPECIALIZE @root:name=value...] [TARGETS targets...])
#
# Links the sources, prepares the command programs and writes, below the current binary folder:
#
#   <name>/manifest.json      the command manifest
#   <name>/commands/          a .loomcmd file for each root
#   <name>/requests/          a .loombc file for each kernel request
#   <name>/<target>/          an object for each request and target, such as x86_64
#
# The target <name> builds them; its property LOOM_FOLDER is the folder. ROOTS have no '@'.
function(loom_command_binary name)
  cmake_parse_arguments(LOOM "" "" "SOURCES;LIBRARIES;ROOTS;CONFIG;SPECIALIZE;TARGETS" ${ARGN})
  if(LOOM_UNPARSED_ARGUMENTS OR NOT LOOM_SOURCES)
    message(FATAL_ERROR "loom_command_binary(${name}) takes SOURCES, LIBRARIES, ROOTS, CONFIG, "
                        "SPECIALIZE and TARGETS; got '${LOOM_UNPARSED_ARGUMENTS}'")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  loom_link_flags(flags inputs)
  foreach(value ${LOOM_SPECIALIZE})
    list(APPEND flags --specialize=${value})
  endforeach()
  set(compile $<TARGET_FILE:Loom::loom-compile>)
  set(kernels)
  foreach(target ${LOOM_TARGETS})
    string(REPLACE ":" "-" target_folder ${target})
    list(APPEND kernels
         COMMAND ${CMAKE_COMMAND} -DCOMPILE=${compile} -DFOLDER=${folder} -DTARGET=${target}
                 -DINTO=${target_folder} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/LoomKernels.cmake)
  endforeach()
  add_custom_command(
    OUTPUT ${folder}/manifest.json
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${compile} ${flags} --format=loom-command --output=${folder}/manifest.json.new
            --emit-command-artifacts=${folder}/commands --emit-kernel-requests=${folder}/requests
    ${kernels}
    COMMAND ${CMAKE_COMMAND} -E rename ${folder}/manifest.json.new ${folder}/manifest.json
    DEPENDS ${inputs} Loom::loom-compile
    VERBATIM
    COMMENT "Compiling command programs of ${name}")
  add_custom_target(${name} ALL DEPENDS ${folder}/manifest.json)
  set_target_properties(${name} PROPERTIES LOOM_FOLDER ${folder})
endfunction()
