# Headers, libraries, programs, the CMake package and the pkg-config file.
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dtrain)
install(TARGETS dtrain_engine dtrain_models dtrain_data EXPORT dtrain-targets)
foreach(folder libdtrain models data)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dtrain FILES_MATCHING PATTERN "*.h")
endforeach()
install(EXPORT dtrain-targets NAMESPACE dtrain:: DESTINATION ${config_dir})
configure_package_config_file(cmake/dtrain-config.cmake.in dtrain-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(dtrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dtrain-config.cmake ${PROJECT_BINARY_DIR}/dtrain-config-version.cmake
  DESTINATION ${config_dir})
configure_file(cmake/dtrain.pc.in dtrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dtrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
