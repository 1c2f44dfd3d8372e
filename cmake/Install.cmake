# Installs headers, libraries, the CMake package and the pkg-config file; dtrain_add_program installs programs. The
# headers in include/dtrain are the library's interface; all other headers are private and not installed. Components:
# `programs` has all that programs need, including the shared libraries; `development` headers and build files;
# `documents` documents and examples.
include(CMakePackageConfigHelpers)
include(PackageVersion)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dtrain)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS dtrain_engine dtrain_models dtrain_data EXPORT dtrain-targets
  LIBRARY COMPONENT programs NAMELINK_COMPONENT development)
install(DIRECTORY include/dtrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/include/dtrain/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dtrain)
install(PROGRAMS scripts/dtrain-mpirun DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
install(EXPORT dtrain-targets NAMESPACE dtrain:: DESTINATION ${package_dir})
set(DTRAIN_DEPENDENCIES "")
if(NOT BUILD_SHARED_LIBS)  # no public header includes a header of a dependency
  foreach(name fmt JPEG PNG GIF TIFF ZLIB Protobuf)
    string(APPEND DTRAIN_DEPENDENCIES "find_dependency(${name})\n")
  endforeach()
  string(APPEND DTRAIN_DEPENDENCIES "${DTRAIN_CUDA_DEPENDENCY}")
endif()
configure_package_config_file(cmake/dtrain-config.cmake.in dtrain-config.cmake INSTALL_DESTINATION ${package_dir})
dtrain_write_package_version(${PROJECT_BINARY_DIR} ${PROJECT_VERSION})
install(FILES ${PROJECT_BINARY_DIR}/dtrain-config.cmake ${PROJECT_BINARY_DIR}/dtrain-config-version.cmake
  ${PROJECT_BINARY_DIR}/dtrain-compatible-version.cmake DESTINATION ${package_dir})

# The prefix in the pkg-config file is relative to the file, so that `cmake --install --prefix` works.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} ${CMAKE_INSTALL_PREFIX})
set(DTRAIN_PC_REQUIRES "")
set(DTRAIN_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)  # consumers of static libraries link all dependencies, so Libs.private is not used
  set(DTRAIN_PC_REQUIRES "fmt libgif libjpeg libpng libsodium libtiff-4 libwebp libwebpdemux protobuf-lite zlib")
  list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND -l OUTPUT_VARIABLE openmp_libs)
  list(JOIN openmp_libs " " openmp_libs)
  set(DTRAIN_PC_LIBS "-ldnnl ${DTRAIN_CUDA_LIBS} ${openmp_libs} -ldl -pthread")
endif()
configure_file(cmake/dtrain.pc.in dtrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dtrain.pc DESTINATION ${pkgconfig_dir})

# Documents and the examples that they describe. Relative links between them stay valid. A separate component: the
# images install the programs from a context without them.
foreach(folder docs examples)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents FILES_MATCHING
    PATTERN "*.md" PATTERN "*.png" PATTERN "*.cpp" PATTERN "*.yml" PATTERN "*.json" PATTERN "examples/CMakeLists.txt"
    PATTERN "*.sbatch" PATTERN "*.py")
endforeach()
# The pages of k8s, and the files that pages link to; manifests, charts and scripts are in the source tree alone.
file(GLOB_RECURSE pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  k8s/*.md k8s/*/serving.ipynb k8s/*/nginx.conf k8s/*/plan.example)
list(APPEND pages k8s/instance-types.csv k8s/instance-prices.csv k8s/support.txt k8s/versions.txt)
foreach(page IN LISTS pages)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT documents)
endforeach()
install(PROGRAMS scripts/migrate_0_1_to_0_2.py DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(FILES README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT documents)
install(FILES debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)  # all licences
