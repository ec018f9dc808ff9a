# What runs on a cluster: scenario files, workloads, results.
target_sources(alb_sim PRIVATE collective.c complaint.c document.c schedule.c sizes.c)

foreach(test collective document schedule sizes)
    alb_test(sim ${test})
endforeach()
