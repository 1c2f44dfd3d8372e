# `cpack -G TGZ` in the build tree writes a relocatable archive of the programs, the documents and the programs' shared
# libraries, without Open MPI, which is not relocatable. The preset `portable` builds such an archive without Open MPI,
# for other systems. scripts/release/debian_packages.sh makes Debian packages.

# Not in the archive: the C library, the dynamic loader and drivers, which belong to the system.
install(RUNTIME_DEPENDENCY_SET dtrain_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so" "^lib(mpi|open-rte|open-pal|cuda|nvidia)"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/dtrain COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackagePermissions.cmake)
set(CPACK_PACKAGE_NAME dtrain)
set(CPACK_PACKAGE_VENDOR dtrain)
set(CPACK_PACKAGE_CONTACT "the maintainers of dtrain <dtrain@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL programs documents bundle)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
include(CPack)
