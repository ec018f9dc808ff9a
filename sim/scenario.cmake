# What runs on a cluster: scenario files, workloads, results.
target_sources(alb_sim PRIVATE complaint.c document.c sizes.c)

foreach(test document sizes)
    alb_test(sim ${test})
endforeach()
