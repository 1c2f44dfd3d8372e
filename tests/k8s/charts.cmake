# Charts, documents and the bundle. Each function test_* of a script is a ctest entry, k8s.<script>.<function>. Tests
# that need Helm, which tests/k8s/tools.sh downloads, are skipped without it.
function(add_k8s_tests name)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
  file(STRINGS ${script} cases REGEX "^def test_")
  list(TRANSFORM cases REPLACE "^def test_([a-z0-9_]+).*" "\\1")
  foreach(case IN LISTS cases)
    if(DTRAIN_K8S_VALIDATING_PYTHON)
      add_test(NAME k8s.${name}.${case} COMMAND ${DTRAIN_K8S_VALIDATING_PYTHON} -B ${script} test_${case})
    else()
      add_test(NAME k8s.${name}.${case} COMMAND ${CMAKE_COMMAND} -E echo
        "SKIPPED: there is no python3 with yaml and jsonschema")
    endif()
    set_tests_properties(k8s.${name}.${case} PROPERTIES LABELS k8s TIMEOUT 120 SKIP_RETURN_CODE 77
      SKIP_REGULAR_EXPRESSION "SKIPPED: there is no" ENVIRONMENT "DTRAIN_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  endforeach()
endfunction()

add_k8s_tests(charts)
add_k8s_tests(chart_scripts)
add_k8s_tests(chart_attacks)
add_k8s_tests(chart_instances)
add_k8s_tests(peers)
add_k8s_tests(serving)
add_k8s_tests(documents)
add_k8s_tests(storage)
add_k8s_tests(instance_types)
