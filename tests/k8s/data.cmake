# Scripts of k8s/data, with moto as S3. tests/k8s/aws/tools.sh downloads it; without it the tests are skipped.
foreach(case save save_faults save_compares save_checkpoints stage_rejects stage_coco stage_weights stage_imagenet stage_code
    tensorboard)
  add_test(NAME k8s.data.${case} COMMAND bash -c
    "'${CMAKE_CURRENT_SOURCE_DIR}/aws/tools.sh' && exec python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/aws/data_test.py' test_${case}")
  set_tests_properties(k8s.data.${case} PROPERTIES LABELS k8s TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "DTRAIN_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endforeach()
add_k8s_tests(preflight_weights)
