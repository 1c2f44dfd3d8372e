# Clusters on AWS: tools, eksctl's and Karpenter's files, components and their versions, Terraform.
add_k8s_tests(aws_tools)
add_k8s_tests(aws_tools_attacks)
add_k8s_tests(cluster_files)
add_k8s_tests(autoscalers)
add_k8s_tests(preflight_nodes)
add_k8s_tests(versions)
add_test(NAME k8s.terraform COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/terraform/terraform_test.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(k8s.terraform PROPERTIES LABELS k8s TIMEOUT 600 SKIP_RETURN_CODE 77)
foreach(case lists_without_yes removes_everything lists_what_is_left file_systems_in_network failures
    usage terraform)
  add_test(NAME k8s.destroy.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/destroy_test.py' test_${case}")
  set_tests_properties(k8s.destroy.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/k8s/tools/*.sh ${PROJECT_SOURCE_DIR}/k8s/cluster/*.sh
  ${PROJECT_SOURCE_DIR}/k8s/cluster/node/*.sh ${PROJECT_SOURCE_DIR}/k8s/ec2/*.sh ${PROJECT_SOURCE_DIR}/k8s/data/*.sh
  ${CMAKE_CURRENT_SOURCE_DIR}/terraform/*.sh)
if(DTRAIN_SHELLCHECK)
  add_test(NAME k8s.aws_shellcheck COMMAND ${DTRAIN_SHELLCHECK} -x ${scripts})
else()
  add_test(NAME k8s.aws_shellcheck COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: there is no shellcheck")
endif()
set_tests_properties(k8s.aws_shellcheck PROPERTIES LABELS k8s SKIP_REGULAR_EXPRESSION "SKIPPED: there is no")
