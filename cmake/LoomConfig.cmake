include(${CMAKE_CURRENT_LIST_DIR}/LoomTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/LoomLinkFlags.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/LoomCommand.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/LoomKernelLibrary.cmake)
