# Selects the components of a package. cpack reads this file (CPACK_PROJECT_CONFIG_FILE) for each generator.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL programs documents development)
else()
  set(CPACK_COMPONENTS_ALL programs documents bundle)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
