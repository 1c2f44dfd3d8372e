# What makes clusters on AWS: tools, eksctl's and Karpenter's files, components, Terraform.
add_k8s_tests(aws_tools)
add_k8s_tests(cluster_files)
add_test(NAME k8s.terraform COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/terraform/terraform_test.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(k8s.terraform PROPERTIES LABELS k8s TIMEOUT 600 SKIP_RETURN_CODE 77)
