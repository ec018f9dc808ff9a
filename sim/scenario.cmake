# What runs on a cluster: scenario files, workloads, results.
target_sources(alb_sim PRIVATE
    collective.c complaint.c document.c draw.c draw_data.c expect.c goal.c ideal.c metric.c result.c run.c run_bytes.c run_faults.c run_heat.c run_model.c run_partial.c run_starts.c run_tasks.c scenario.c
    scenario_agree.c scenario_effect.c scenario_field.c scenario_keys.c scenario_policy.c schedule.c sizes.c summary.c workload.c)
target_link_libraries(alb_sim PUBLIC m)

foreach(test collective document draw expect goal run run_heat run_partial run_tasks scenario schedule sizes summary workload)
    alb_test(sim ${test})
endforeach()
if(BUILD_TESTING)
    target_link_options(test_sim_scenario PRIVATE LINKER:--wrap=malloc)
endif()
