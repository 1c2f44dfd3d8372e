# The CPU image with the programs of this build tree, if it has shared libraries. Tests of its fixture find it in
# DTRAIN_K8S_IMAGE.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND NOT DTRAIN_SANITIZE AND NOT DTRAIN_CUDA STREQUAL "EMULATED")
  set(image ${PROJECT_BINARY_DIR}/k8s-image)
  add_test(NAME k8s.image_build COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/image_build.sh ${PROJECT_BINARY_DIR} ${image})
  set_tests_properties(k8s.image_build PROPERTIES LABELS k8s FIXTURES_SETUP k8s_image TIMEOUT 300
    SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  add_test(NAME k8s.image COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/image_test.py ${image})
  set_tests_properties(k8s.image PROPERTIES LABELS k8s FIXTURES_REQUIRED k8s_image TIMEOUT 300
    SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  add_test(NAME k8s.image_push COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/image_push_test.sh ${image})
  set_tests_properties(k8s.image_push PROPERTIES LABELS k8s FIXTURES_REQUIRED k8s_image TIMEOUT 300
    SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  add_test(NAME k8s.image_cuda COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/image_cuda_test.py)
  set_tests_properties(k8s.image_cuda PROPERTIES LABELS k8s TIMEOUT 300 SKIP_REGULAR_EXPRESSION "SKIPPED: ")
endif()
add_k8s_tests(image_command)
add_k8s_tests(entry_point)
