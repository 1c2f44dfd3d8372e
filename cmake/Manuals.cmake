# Manual pages, printed by the built programs, and bash completion.
set(manuals ${PROJECT_BINARY_DIR}/man)
file(MAKE_DIRECTORY ${manuals})
get_property(names GLOBAL PROPERTY DTRAIN_PROGRAMS)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "cross-compiling: no manual pages, because the programs that print them cannot run")
else()
  set(stamps)
  foreach(program IN LISTS names ITEMS ${PROJECT_SOURCE_DIR}/scripts/dtrain-mpirun)
    cmake_path(GET program FILENAME name)
    set(stamp ${PROJECT_BINARY_DIR}/man.${name}.stamp)
    set(file ${program})
    if(TARGET ${program})
      set(file $<TARGET_FILE:${program}>)
    endif()
    add_custom_command(OUTPUT ${stamp} COMMAND ${PROJECT_SOURCE_DIR}/cmake/man_pages.sh ${file} ${manuals}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp} DEPENDS ${program} ${PROJECT_SOURCE_DIR}/cmake/man_pages.sh
      COMMENT "Manual pages of ${name}" VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(manuals ALL DEPENDS ${stamps})
  add_dependencies(programs manuals)
endif()
install(DIRECTORY ${manuals}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)

# bash-completion looks up a file by the program's name: links to one file.
list(JOIN names " " programs)
configure_file(scripts/dtrain-completion.bash ${PROJECT_BINARY_DIR}/completion.bash @ONLY)
foreach(name IN LISTS names)
  install(FILES ${PROJECT_BINARY_DIR}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME ${name} COMPONENT programs)
endforeach()
