# Benchmark plans, with recorders for cluster tools and moto as S3.
foreach(case complete_run failures interrupted data_is_where_experiments_read_it metric_is_data outcomes existing_resources_are_kept storage copy_failure plans)
  add_test(NAME k8s.benchmark.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/benchmark_test.py' test_${case}")
  set_tests_properties(k8s.benchmark.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
# Costs that scripts print, with the same tools.
foreach(case table cost plan_example)
  add_test(NAME k8s.cost.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/cost_test.py' test_${case}")
  set_tests_properties(k8s.cost.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
