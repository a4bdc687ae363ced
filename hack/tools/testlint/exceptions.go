package main

// exceptions are the places that may break a rule, each with the reason.
var exceptions = []exception{
	// Limits that have to pass, as the test is of what happens then.
	{
		"internal/redis/flood_integration_test.go", "testFlood", ruleLimit,
		"what is sent in several calls is counted: each ends early, and the test goes on until all is sent",
	},
	{
		"test/operator/events_integration_test.go", "TestEventsOnARealAPIServer", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/crash/crash_integration_test.go", "live", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/crash/losses_integration_test.go", "*lossStage.createFault", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/fuzz/hostile_integration_test.go", "TestHostileLoadPodsAndTheirStatuses", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/fuzz/hostile_redis_integration_test.go", "hostileFault", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/overlap/stage_integration_test.go", "*overlapStage.newFault", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"test/operator/rights_integration_test.go", "faultOf", ruleLimit,
		"nobody waits for the recovery: a short deadline ends the observation of the fault",
	},
	{
		"internal/netfault/kernel/kernel_integration_test.go", "*world.misses", ruleLimit,
		"the answer does not come: its packets are dropped; one that comes fails the test at any time",
	},
	{
		"internal/engine/loop_integration_test.go", "TestDeadAddress", ruleLimit,
		"requests at the dead address have to time out; what is asserted is waited for",
	},
	{
		"internal/engine/topology_integration_test.go", "TestKilledPrimaryUnderSentinels", ruleLimit,
		"what queues during the outage has to time out; what is asserted is waited for",
	},
	{
		"internal/engine/topology_integration_test.go", "testDeadShardHasAGapOfItsOwn", ruleLimit,
		"what queues during the outage has to time out; what is asserted is waited for",
	},
	{
		"internal/engine/ledger/failover_integration_test.go",
		"testSentinelFailoverWithWritesPausedLosesNothing", ruleLimit,
		"a batch at the paused primary has to time out, so that its writer asks for the new one; its writes count as unknown",
	},
	{
		"internal/engine/workload/cacheaside_integration_test.go", "testCacheAside", ruleLimit,
		"a cache that never answers has to make the call time out",
	},
	{
		"internal/fault/failover/replication_integration_test.go", "testFailoverToAHangingReplica",
		ruleLimit, "the failover to a stopped replica has to time out",
	},
	{
		"internal/fault/process/crash_integration_test.go", "TestCrashWithUnknownResult", ruleLimit,
		"the call of a server that never answers has to time out",
	},
	{
		"internal/fault/scale/scale_integration_test.go", "TestReplicaScaleForeignData", ruleLimit,
		"the synchronization of a server that never synchronizes has to time out",
	},
	{
		"internal/redis/client_integration_test.go", "testQueueRefused", ruleLimit,
		"the call of a server that is paused for much longer has to time out",
	},
	{
		"internal/redis/track/follow_integration_test.go", "TestSentinelFailover", ruleLimit,
		"half of it is the time between two failovers, of which the test needs two; one that takes longer is tried again",
	},
	{
		"internal/testing/redistest/redistest_integration_test.go", "TestBlackHole", ruleLimit,
		"the dial of an address without answer has to time out",
	},

	// Values that nothing runs with.
	{
		"test/fuzz/faults_integration_test.go", "member", ruleLimit,
		"a random value, of which is tested that the API server and the controllers accept it",
	},
	{
		"test/fuzz/fuzz_integration_test.go", "loadTest", ruleLimit,
		"a random value, of which is tested that the API server and the controllers accept it",
	},
	{
		"test/fuzz/fuzz_integration_test.go", "fault", ruleLimit,
		"a random value, of which is tested that the API server and the controllers accept it",
	},
	{
		"internal/testing/stage/kinds.go", "", ruleLimit,
		"a random value of the fuzz test, of which is tested that the API server and the controllers accept it",
	},
	{
		"test/admission/accepted_test.go", "", ruleLimit,
		"the default of the field, which the test compares",
	},

	// What measures the machine's stalls, or allows for them itself.
	{
		"internal/testing/operatortest/apiserver.go", "watchMachine", ruleBound,
		"it records the stalls of the machine",
	},
	{
		"internal/testing/stage/problems.go", "*Stage.LeftPaused", ruleLimit,
		"a pause that is left over expires soon, so it must be seen at once; after a stall the test asks again for longer",
	},
	{
		"internal/testing/serverstate/serverstate.go", "Of", ruleLimit,
		"a paused server must not be waited for until its pause is over; after a stall the test waits longer",
	},
	{
		"test/crash/losses_integration_test.go", "*lossStage.look", ruleBound,
		"an answer as late as that is what a paused server gives; make crash-test measures it",
	},
	{
		"test/soak/observe_test.go", "every", ruleLimit,
		"a look that gets no answer is none: the next one must come in time, as what is measured is when effects were seen",
	},
	{
		"test/soak/observe_test.go", "*soak.lookAtServers", ruleLimit,
		"the same: a paused server must not keep the others from being looked at",
	},
	{
		"test/e2e/faultkinds_test.go", "*namespace.flows", ruleBound,
		"a lower bound: the load must come through for so long",
	},

	// Periods of servers that make them fail over. On a slow machine they may once more, which the
	// tests allow for.
	{
		"internal/testing/stage/clusters.go", "", ruleLimit,
		"make crash-test and make overlap: a server is elected again only after four times as long, which each of hundreds of rows waits for",
	},
	{
		"internal/testing/stage/clusters.go", "clustered", ruleLimit,
		"make crash-test and make overlap: a server is elected again only after four times as long, which each of hundreds of rows waits for",
	},
	{
		"internal/testing/crashtest/process.go", "runAsOperator", ruleLimit,
		"make crash-test: the faults last as long as it takes to lose the leadership",
	},
	{
		"test/operator/leadership_integration_test.go", "", ruleLimit,
		"what is tested is that the leadership is lost, and lost again if the machine stalls",
	},

	// Measurements with a target of their own, on a machine without other work.
	{
		"internal/analysis/bottleneck/provoke_integration_test.go", "planOf", ruleLimit,
		"make provoke: the timeouts belong to the record that the unit tests read",
	},
	{
		"test/accuracy/accuracy_integration_test.go", "plant", ruleLimit,
		"make accuracy: the server is heard until the next outage",
	},
	{
		"test/accuracy/accuracy_integration_test.go", "experiment.compare", ruleLimit,
		"make accuracy: the observation ends before the next outage",
	},
	{
		"test/accuracy/load_integration_test.go", "*load.plan", ruleLimit,
		"make accuracy: requests during an outage have to time out in some of the cases",
	},
	{
		"test/accuracy/wire_integration_test.go", "*wire.hear", ruleBound,
		"a lower bound: a connection that is refused is reset within this time",
	},
	{
		"test/e2e/injection_test.go", "*namespace.whenSilent", ruleLimit,
		"make bench-inject: a server that does not answer for so long has been killed",
	},
	{
		"test/e2e/watcher_test.go", "", ruleLimit,
		"the independent measurement of outages: a try that takes longer is none that succeeded",
	},
	{
		"test/e2e/watcher_test.go", "setOnce", ruleLimit,
		"the independent measurement of outages: a try that takes longer is none that succeeded",
	},
	{
		"test/failovers/cases_test.go", "newCluster", ruleLimit,
		"make failovers: the measurement is of this cluster-node-timeout",
	},
}
