# Jobs in emulated pods (namespaces), and on a single-node Kubernetes if tests/k8s/cluster.sh has built it.
# The fixture k8s_image provides the image.
if(DTRAIN_K8S_VALIDATING_PYTHON)
  add_test(NAME k8s.expand COMMAND ${DTRAIN_K8S_VALIDATING_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/expand_test.py)
else()
  add_test(NAME k8s.expand COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: there is no python3 with yaml and jsonschema")
endif()
set_tests_properties(k8s.expand PROPERTIES LABELS k8s TIMEOUT 60 SKIP_REGULAR_EXPRESSION "SKIPPED: there is no")

add_k8s_tests(run)
add_k8s_tests(cluster)
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "^k8s\\.(run|cluster)\\.")
set_property(TEST ${tests} PROPERTY FIXTURES_REQUIRED k8s_image)
set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT DTRAIN_K8S_IMAGE=${PROJECT_BINARY_DIR}/k8s-image)
list(FILTER tests INCLUDE REGEX "^k8s\\.cluster\\.")
# One cluster at a time: on two cores the nodes of two clusters would respond too slowly.
set_property(TEST ${tests} PROPERTY TIMEOUT 400)
set_property(TEST ${tests} PROPERTY PROCESSORS 2)
set_property(TEST ${tests} PROPERTY RESOURCE_LOCK k8s_cluster)
if(TEST k8s.run.mpich)  # beside compilers one of its two proxies sometimes fails to resolve the launcher's name
  set_property(TEST k8s.run.mpich PROPERTY PROCESSORS 2)
endif()
