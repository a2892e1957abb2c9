# The installed package: the programs, one shared library with the C++ and C surface, its two headers
# and the CMake functions that applications use. find_package(Loom) gives Loom::loom.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Only api is taken whole: what it does not reach is of no use outside.
file(WRITE ${CMAKE_BINARY_DIR}/loom_shared.cpp "")
add_library(loom SHARED ${CMAKE_BINARY_DIR}/loom_shared.cpp)
target_link_libraries(loom PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,loom_api>)
target_include_directories(loom INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(loom PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                      INSTALL_RPATH_USE_LINK_PATH TRUE)

set(LOOM_API_HEADERS inspect.h loom.h loom_c.h profile.h reference_run.h rewrites.h)
set(loom_package ${CMAKE_INSTALL_LIBDIR}/cmake/Loom)
install(TARGETS loom EXPORT LoomTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The headers of applications; the others of the room show what is behind the handles.
list(TRANSFORM LOOM_API_HEADERS PREPEND src/loom/api/)
install(FILES ${LOOM_API_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loom/api)
# Kernels that are written by hand follow this header.
install(FILES src/loom/target/x86/kernel_abi.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/loom/target/x86)
get_property(loom_programs GLOBAL PROPERTY LOOM_PROGRAMS)
set_target_properties(${loom_programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH TRUE)
install(TARGETS ${loom_programs} EXPORT LoomTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT LoomTargets NAMESPACE Loom:: DESTINATION ${loom_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/LoomConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES cmake/LoomConfig.cmake cmake/LoomLinkFlags.cmake cmake/LoomCommand.cmake
              cmake/LoomKernels.cmake cmake/LoomKernelLibrary.cmake
              ${CMAKE_BINARY_DIR}/LoomConfigVersion.cmake DESTINATION ${loom_package})
# The optimizer's files, with the installer of its settings.
install(PROGRAMS share/hyperloom/install.sh DESTINATION share/hyperloom)
install(FILES share/hyperloom/.env.template DESTINATION share/hyperloom)
