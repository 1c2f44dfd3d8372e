# Overlays and their scripts. Validation needs Debian's python3-yaml and python3-jsonschema; rendering needs a kubectl
# with components, which tests/k8s/tools.sh downloads. Tests without their tools are skipped with a reason.
foreach(candidate /usr/bin/python3 python3)
  execute_process(COMMAND ${candidate} -c "import jsonschema, yaml" RESULT_VARIABLE missing ERROR_QUIET OUTPUT_QUIET)
  if(NOT missing AND NOT DTRAIN_K8S_VALIDATING_PYTHON)
    set(DTRAIN_K8S_VALIDATING_PYTHON ${candidate})
  endif()
endforeach()
find_program(DTRAIN_SHELLCHECK shellcheck)

function(add_overlay_test name needed)
  if(${needed})
    add_test(NAME k8s.overlays.${name} COMMAND ${ARGN})
  else()
    add_test(NAME k8s.overlays.${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: there is no ${needed}")
  endif()
  set_tests_properties(k8s.overlays.${name} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_REGULAR_EXPRESSION "SKIPPED: there ")
endfunction()

set(here ${CMAKE_CURRENT_SOURCE_DIR})
set(validating ${DTRAIN_K8S_VALIDATING_PYTHON} -B)
add_overlay_test(manifests DTRAIN_K8S_VALIDATING_PYTHON ${validating} ${here}/manifests_test.py
  --source ${PROJECT_SOURCE_DIR} --version ${PROJECT_VERSION})
add_overlay_test(set DTRAIN_K8S_VALIDATING_PYTHON ${validating} ${here}/set_test.py)
add_overlay_test(commands DTRAIN_K8S_VALIDATING_PYTHON ${validating} ${here}/commands_test.py
  --source ${PROJECT_SOURCE_DIR} --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
add_overlay_test(rendered CMAKE_COMMAND bash -c
  "kubectl version --client >/dev/null 2>&1 && exec '${PROJECT_SOURCE_DIR}/k8s/render.sh' --check || echo 'SKIPPED: there is no kubectl'")
add_overlay_test(preflight CMAKE_COMMAND ${here}/preflight_test.sh ${PROJECT_SOURCE_DIR})
add_overlay_test(elastic CMAKE_COMMAND ${here}/elastic_test.sh ${PROJECT_SOURCE_DIR})
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/k8s/*.sh ${PROJECT_SOURCE_DIR}/k8s/overlays/*/*.sh
  ${PROJECT_SOURCE_DIR}/k8s/lib/*.sh
  ${here}/*.sh ${here}/kubectl_recorder)
add_overlay_test(shellcheck DTRAIN_SHELLCHECK ${DTRAIN_SHELLCHECK} -x ${scripts})
