# Packages. In the build tree, `cpack -G DEB` writes the Debian packages dtrain (programs, documents, examples) and
# libdtrain-dev (library). `cpack -G TGZ` writes a relocatable archive of the programs, the documents and the programs'
# shared libraries, without Open MPI, which is not relocatable. The preset `portable` builds such an archive without Open
# MPI, for other systems.

# Not in the archive: the C library, the dynamic loader and drivers, which belong to the system.
install(RUNTIME_DEPENDENCY_SET dtrain_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so" "^lib(mpi|open-rte|open-pal|cuda|nvidia)"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/dtrain COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackagePermissions.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageComponents.cmake)
set(CPACK_PACKAGE_NAME dtrain)
set(CPACK_PACKAGE_VENDOR dtrain)
set(CPACK_PACKAGE_CONTACT "the maintainers of dtrain <dtrain@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_PROGRAMS_GROUP programs)
set(CPACK_COMPONENT_DOCUMENTS_GROUP programs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME dtrain)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "Programs that train, evaluate and apply image models.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libdtrain-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
string(CONCAT CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "g++, libdnnl-dev, libfmt-dev, libgif-dev, libjpeg-dev, libpng-dev, libprotobuf-dev, "
  "libsodium-dev, libtiff-dev, libwebp-dev, zlib1g-dev")
if(DTRAIN_HAVE_MPI)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libopenmpi-dev")
endif()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, static libraries, and files for CMake and pkg-config.")
include(CPack)
