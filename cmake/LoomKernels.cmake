# Run by loom_command_binary(): compiles each request of FOLDER with COMPILE for TARGET into
# FOLDER/INTO.
file(MAKE_DIRECTORY ${FOLDER}/${INTO})
file(GLOB requests ${FOLDER}/requests/*.loombc)
foreach(request ${requests})
  get_filename_component(name ${request} NAME_WE)
  execute_process(COMMAND ${COMPILE} ${request} --target=${TARGET}
                          --output=${FOLDER}/${INTO}/${name}.o
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${request} cannot be compiled for ${TARGET}")
  endif()
endforeach()
