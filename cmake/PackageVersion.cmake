# dtrain_write_package_version(FOLDER VERSION): version files of the CMake package. A program asks for a minor version,
# each of which may change the API until 1.0 (docs/library.md). The refusal of an older one tells how to migrate:
# CMake shows PACKAGE_VERSION.
include_guard()
include(CMakePackageConfigHelpers)
function(dtrain_write_package_version folder version)
  write_basic_package_version_file(${folder}/dtrain-compatible-version.cmake VERSION ${version}
    COMPATIBILITY SameMinorVersion)
  file(WRITE ${folder}/dtrain-config-version.cmake [[
include(${CMAKE_CURRENT_LIST_DIR}/dtrain-compatible-version.cmake)
if(NOT PACKAGE_VERSION_COMPATIBLE AND PACKAGE_FIND_VERSION VERSION_LESS PACKAGE_VERSION)
  string(APPEND PACKAGE_VERSION "; programs for ${PACKAGE_FIND_VERSION} need changes, most by a script: see "
    "share/doc/dtrain/docs/migration.md")
endif()
]])
endfunction()
