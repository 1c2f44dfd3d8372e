# k8s/ec2: stacks on moto, which tests/k8s/aws/tools.sh downloads, and training on hosts in network namespaces.
foreach(case stack template user_data selects_run_to_resume)
  add_test(NAME k8s.ec2.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/ec2_test.py' test_${case}")
  set_tests_properties(k8s.ec2.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
foreach(case states images usage)
  add_test(NAME k8s.ec2.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/stack_test.py' test_${case}")
  set_tests_properties(k8s.ec2.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
add_k8s_tests(ec2_hosts)
if(DTRAIN_HAVE_MPI)
  add_k8s_tests(ec2_run)
  set_tests_properties(k8s.ec2_run.trains_and_resumes k8s.ec2_run.health PROPERTIES TIMEOUT 240 PROCESSORS 2)
endif()
