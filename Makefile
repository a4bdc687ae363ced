# `make help` lists the targets. Each tool is installed once into bin/tools, at the version set here.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# One build configuration for image, tests and tools, so that they share the build cache. Without debug information the compiler takes a fifth less CPU;
# traces and profiles have names and lines nevertheless.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMG ?= ghcr.io/redquake/redquake:dev
IMAGE_TAR ?= build/image/redquake.tar
# Folders of config/components that the installation includes, separated by commas or spaces: node-faults switches NodeLoss, ZoneLoss and VolumeAttachDelay on, with the rights
# for them; network-faults has the rights for NetworkPartition, NetworkLoss and NetworkDelay without Chaos Mesh; volume-faults switches VolumeLoss and DiskFull on; prometheus has the manager scraped, with alerts; dashboards are for Grafana.
COMPONENTS ?=
comma := ,
components = $(subst $(comma), ,$(COMPONENTS))
# Comma-separated namespaces, for an operator with rights in these only (config/namespaced); empty: all namespaces.
NAMESPACES ?=

# The cluster for tests, demo and deploy: lab (created by hack/lab on this machine), existing (the current kubeconfig) or kind.
CLUSTER ?= lab
export CLUSTER
LAB := $(CURDIR)/hack/lab/lab
KUBECTL ?= $(CURDIR)/hack/lab/kubectl

CONTROLLER_GEN_VERSION := v0.23.0
KUSTOMIZE_VERSION := v5.8.1
GOLANGCI_LINT_VERSION := v2.15.0
CRD_REF_DOCS_VERSION := v0.3.0
GOTESTSUM_VERSION := v1.13.0
HELM_VERSION := v4.3.1
HELM3_VERSION := v3.22.0
ACTIONLINT_VERSION := v1.7.12
# goreleaser v2.18 and later need Go 1.27.
GORELEASER_VERSION := v2.16.0
SYFT_VERSION := v1.57.1
KREW_VERSION := v0.4.3
ORAS_VERSION := v1.3.6
TOOLS := $(CURDIR)/bin/tools
CONTROLLER_GEN := $(TOOLS)/controller-gen-$(CONTROLLER_GEN_VERSION)/controller-gen
KUSTOMIZE := $(TOOLS)/kustomize-$(KUSTOMIZE_VERSION)/kustomize
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
CRD_REF_DOCS := $(TOOLS)/crd-ref-docs-$(CRD_REF_DOCS_VERSION)/crd-ref-docs
export GOTESTSUM := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)/gotestsum
HELM := $(TOOLS)/helm-$(HELM_VERSION)/helm
HELM3 := $(TOOLS)/helm-$(HELM3_VERSION)/helm
export REDQUAKE_HELM := $(HELM)
export REDQUAKE_HELM3 := $(HELM3)
ACTIONLINT := $(TOOLS)/actionlint-$(ACTIONLINT_VERSION)/actionlint
GORELEASER := $(TOOLS)/goreleaser-$(GORELEASER_VERSION)/goreleaser
SYFT := $(TOOLS)/syft-$(SYFT_VERSION)/syft
KREW := $(TOOLS)/krew-$(KREW_VERSION)/krew
ORAS := $(TOOLS)/oras-$(ORAS_VERSION)/oras

LDFLAGS := -s -w -X github.com/redquake/redquake/internal/version.Version=$(VERSION)
GO_BUILD := go build -ldflags '$(LDFLAGS)'
# Lint runs vet.
GO_TEST := go test -vet=off
# Packages with goroutines that share state, which do not link Kubernetes: their unit tests run with the race detector. `make race` runs it everywhere.
RACE_PACKAGES := ./internal/agent/... ./internal/collect/... ./internal/engine/... ./internal/redis/...
# The files with the build tag integration and their packages: `make integration` runs only the tests in them, not the unit tests again.
INTEGRATION_FILES = $(shell grep -rlE '^//go:build integration$$' --include='*_test.go' api cmd controllers internal test)
INTEGRATION_FOUND = $(or $(sort $(patsubst %/,./%,$(dir $(INTEGRATION_FILES)))),$(error no package has an integration test))
# The longest come first, so that none of them is left to run alone at the end.
INTEGRATION_LONGEST := ./test/clients ./test/operator ./cmd/redquake ./internal/fault/scale
INTEGRATION_PACKAGES = $(INTEGRATION_LONGEST) $(filter-out $(INTEGRATION_LONGEST),$(INTEGRATION_FOUND))
# Tests that compute for long, or move hundreds of megabytes, on paths that shorter tests take with the race detector: it makes them take eight times
# as long. `make race` runs them with it.
WITHOUT_RACE := ^(TestTruthFaultAfterARestart|TestTruthMemoryOfAllTests|TestTruthClocksOfPodsDrift|TestTruthAFullLedgerDropsNothing|TestHonestPodBesideHostileOnes)$$
# Runs one measurement on real servers, with its output as it runs.
MEASURE := $(GO_TEST) -tags integration -count=1 -v
# Runs a command that prints JSON of `go test`.
SUMMARY := hack/tools/gotest.sh
# The folder with kube-apiserver and etcd.
ASSETS = $$(hack/test-needs.sh assets)

.PHONY: help
help: ## Show this list
	@awk -F':.*## ' '/^## /{printf "\n%s\n", substr($$0, 4)} /^[a-z0-9-]+:.*## /{printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Try it

.PHONY: demo
demo: ## Load a Redis, kill its primary, show what clients experienced, and write the report; boots the lab if it is down (2 minutes)
	hack/demo.sh

.PHONY: demo-multi-attach
demo-multi-attach: ## The same with a volume that stays on the old node for 20 s, and the cluster's Multi-Attach error
	hack/demo-multi-attach.sh

.PHONY: demo-experiment
demo-experiment: ## Run an experiment: appendfsync no, everysec and always with four commands, four times each: build/demo/experiment-benchmark.html (20 minutes)
	hack/demo.sh config/samples/experiment-benchmark.yaml

# The entries of config/gallery that NAME lists, separated by commas, or all. On a cluster of your own the images come from its registry: config/gallery/bases/api/kustomization.yaml.
NAME ?=
GALLERY_IMAGE := build/image/departments.tar
REDIS_OPERATOR := build/redis-operator
gallery_names = $(subst $(comma), ,$(NAME))
# What the lab lacks: the images, and for the entry that needs it the Redis operator.
gallery_needs = load-gallery-images $(if $(filter operator-away,$(or $(gallery_names),operator-away)),load-redis-operator)

.PHONY: gallery
gallery: COMPONENTS := node-faults network-faults
gallery: build lab-up $(if $(filter lab,$(CLUSTER)),$(gallery_needs)) deploy ## Run the gallery's entries, or NAME=persistence,ranking: build/gallery, build/gallery.json (about 2 3/4 hours)
	go build -o build/gallery-runner ./hack/gallery
	$(if $(filter lab,$(CLUSTER)),$(LAB) exec --) build/gallery-runner --kubectl $(KUBECTL) --redquake bin/redquake \
	  --manifests config/gallery$(if $(filter lab,$(CLUSTER)),/lab --redis-operator $(REDIS_OPERATOR).yaml) $(gallery_names)
	REDQUAKE_GALLERY=$(CURDIR)/build/gallery $(GO_TEST) -tags gallery -count=1 -v -run '^TestReportsOpen$$' ./hack/gallery

.PHONY: gallery-docs
gallery-docs: ## Fill the tables and take the pictures of docs/gallery from the reports of the last make gallery
	mkdir -p docs/gallery/pictures docs/gallery/reports
	go run ./hack/gallery --docs docs/gallery $(gallery_names)
	REDQUAKE_GALLERY=$(CURDIR)/build/gallery REDQUAKE_PICTURES_OUT=$(CURDIR)/docs/gallery/pictures $(GO_TEST) -tags gallery -count=1 -v -run '^TestReportsOpen$$' ./hack/gallery

.PHONY: load-gallery-images
load-gallery-images: lab-up load-image
	go build -o build/departments ./test/departments
	$(LAB) image static --program build/departments --tag ghcr.io/redquake/departments:dev -o $(GALLERY_IMAGE)
	$(LAB) image mariadb -o build/image/mariadb.tar
	$(LAB) load $(GALLERY_IMAGE) build/image/mariadb.tar

# Program and CRD are of the version in hack/redisoperator/go.mod. A cluster of your own has the operator already, or gets it from its publisher: config/gallery/bases/redis-operator.
.PHONY: load-redis-operator
load-redis-operator: lab-up $(KUSTOMIZE)
	mkdir -p build/image
	cd hack/redisoperator && go build -ldflags '-s -w' -o $(CURDIR)/$(REDIS_OPERATOR) github.com/spotahome/redis-operator/cmd/redisoperator
	$(LAB) image static --program $(REDIS_OPERATOR) --tag $$(sed -n 's/^ *image: //p' config/gallery/bases/redis-operator/operator.yaml) -o build/image/redis-operator.tar
	$(LAB) load build/image/redis-operator.tar
	cat "$$(cd hack/redisoperator && go list -m -f '{{.Dir}}' github.com/spotahome/redis-operator)"/manifests/databases.spotahome.com_redisfailovers.yaml > $(REDIS_OPERATOR).yaml
	{ echo ---; $(KUSTOMIZE) build config/gallery/bases/redis-operator; } >> $(REDIS_OPERATOR).yaml

.PHONY: accuracy
accuracy: ## Plant outages of known length, also with a disturbed load generator, and compare: build/accuracy.json (14 minutes)
	mkdir -p build
	REDQUAKE_ACCURACY_OUT=$(CURDIR)/build/accuracy.json $(MEASURE) -timeout 40m -run '^(TestMeasureBounds|TestMeasureOpenLoopLatency)$$' ./test/accuracy ./internal/engine

# How many experiments make starvation compares.
EXPERIMENTS ?= 40

.PHONY: starvation
starvation: build servers ## Run the load generator beside 0, 1 and 3 busy programs on its CPU, and compare the same Redis with itself in 40 experiments: build/starvation.json (20 minutes)
	mkdir -p build
	REDQUAKE_STARVATION_OUT=$(CURDIR)/build/starvation.json REDQUAKE_STARVATION_COMMAND=$(CURDIR)/bin/redquake REDQUAKE_STARVATION_EXPERIMENTS=$(EXPERIMENTS) \
	  $(MEASURE) -timeout 60m -run '^TestMeasureStarvation$$' ./test/accuracy

# How many histories make oracle draws.
HISTORIES ?= 20000

.PHONY: oracle
oracle: ## Draw HISTORIES=20000 loads and faults, play them in virtual time and hold every figure against the truth, ORACLE_SEED repeats them: build/oracle.json (20 minutes)
	mkdir -p build
	REDQUAKE_ORACLE_OUT=$(CURDIR)/build/oracle.json HISTORIES=$(HISTORIES) ORACLE_SEED=$(ORACLE_SEED) \
	  $(GO_TEST) -tags oracle -count=1 -v -timeout 12h -run '^TestOracle$$' ./internal/testing/oracle

# The packages with a test of a scenario, see internal/testing/truth.
TRUTH_PACKAGES = $(sort $(patsubst %/,./%,$(dir $(shell grep -rlE '^func TestTruth' --include='*_test.go' controllers cmd internal test))))

.PHONY: truth
truth: servers ## Run every scenario in which a figure was once wrong, print truth and report: build/truth.json (1 minute)
	@mkdir -p build
	@KUBEBUILDER_ASSETS=$(ASSETS); export KUBEBUILDER_ASSETS; \
	go run ./hack/tools/truthtable build/truth.json $(SUMMARY) truth \
	  env $(GO_TEST) -json -tags integration -count=1 -timeout 20m -run '^TestTruth' $(TRUTH_PACKAGES)

.PHONY: statistics
statistics: ## Simulate experiments of which the truth is known, and count what is said of them: build/statistics.json (2 minutes)
	go run ./hack/statistics build/statistics.json

.PHONY: provoke
provoke: ## Provoke each bottleneck on a real Redis: build/provoke/, the input of internal/analysis/bottleneck's tests (2 minutes)
	rm -rf build/provoke && mkdir -p build/provoke
	REDQUAKE_PROVOKE_OUT=$(CURDIR)/build/provoke $(MEASURE) -timeout 10m -run '^TestProvoke$$' ./internal/analysis/bottleneck

.PHONY: failovers
failovers: ## Measure the lost writes and outages of real failovers: docs/measured-failovers.md (6 minutes)
	REDQUAKE_FAILOVERS_OUT=$(CURDIR)/docs/measured-failovers.md $(MEASURE) -timeout 30m -run '^TestMeasureFailovers$$' ./test/failovers

# Server, load generators and agents share this machine's cores: run nothing else meanwhile.
.PHONY: bench
bench: build ## Compare load generators by CPU per request: build/bench.json, docs/benchmarks.md (25 minutes)
	$(GO_BUILD) -tags nobounds -o bin/redquake-nobounds ./cmd/redquake
	go run ./hack/bench run $(BENCH_FLAGS)

.PHONY: bench-cost
bench-cost: build ## Measure what a load costs by its rate, connections and values: build/bench-cost.json, docs/sizing.md (13 minutes)
	go run ./hack/bench cost $(BENCH_FLAGS)

.PHONY: bench-collect
bench-collect: ## Measure the collection from 1,000 simulated load pods, and of a run of a day: build/bench-collect.json, build/bench-day.json, docs/benchmarks.md (12 minutes)
	go run ./hack/bench collect $(BENCH_FLAGS)

# The manager is a process of its own, beside a real kube-apiserver with etcd: about 3 GiB of memory are needed.
.PHONY: bench-scale
bench-scale: build ## Measure the manager on a cluster of 30,000 foreign pods and 5,000 nodes, with 1,000 load tests and faults: build/bench-scale.json, docs/benchmarks.md (8 minutes)
	KUBEBUILDER_ASSETS=$(ASSETS); export KUBEBUILDER_ASSETS; go run ./hack/bench scale $(BENCH_FLAGS)

.PHONY: bench-report
bench-report: ## Measure size and opening time of reports in a headless Chromium: build/bench-report.json; fails beyond 5 MB or 2 s (1 minute)
	mkdir -p build
	REDQUAKE_REPORT_OUT=$(CURDIR)/build/bench-report.json $(MEASURE) -timeout 10m -run '^TestMeasureReports$$' ./internal/report/run

# With a run of the lab in that file, as docs/reports.md saves one, the pictures are of it.
DEMO_RUN ?= $(CURDIR)/internal/report/run/testdata/demo.yaml

.PHONY: screenshots
screenshots: ## Take the pictures of reports and of the live page in a headless Chromium: docs/pictures (2 minutes)
	mkdir -p docs/pictures
	REDQUAKE_DEMO_RUN=$(DEMO_RUN) REDQUAKE_PICTURES_OUT=$(CURDIR)/docs/pictures $(MEASURE) -timeout 10m -run '^TestTakePictures$$' ./internal/report/run ./internal/report/matrix ./internal/report/schedule
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_PICTURES_OUT=$(CURDIR)/docs/pictures $(MEASURE) -timeout 10m -run '^TestLivePage$$' ./controllers/dashboardserver

.PHONY: demo-run
demo-run: ## Kill a real Redis under a load on this machine, and keep objects and record for the pictures: internal/report/run/testdata/demo.yaml (2 minutes)
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_DEMO_OUT=$(CURDIR)/internal/report/run/testdata/demo.yaml \
	  $(MEASURE) -timeout 10m -run '^TestRunForPictures$$' ./test/operator

.PHONY: bench-search
bench-search: ## Measure how exactly searches find the rate that a slowed Redis can serve: build/bench-search.json (3 minutes)
	mkdir -p build
	REDQUAKE_SEARCH_OUT=$(CURDIR)/build/bench-search.json $(MEASURE) -timeout 30m -run '^TestMeasureSearch$$' ./cmd/redquake

.PHONY: bench-inject
bench-inject: lab-up load-image build/install.yaml ## Measure the time from kubectl apply of a fault to its effect, on the lab: build/bench-inject.json, docs/benchmarks.md (at most 20 minutes)
	REDQUAKE_E2E_INSTALL=$(CURDIR)/build/install.yaml REDQUAKE_INJECTION_OUT=$(CURDIR)/build/bench-inject.json \
	  go test -tags e2e -count=1 -v -timeout 20m -run '^TestInjectionTimes$$' -exec "$(LAB) exec --" ./test/e2e/...
	go run ./hack/bench docs

## Test

unit integration truth race e2e e2e-full e2e-together e2e-failovers e2e-namespaced e2e-installation upgrade-test objects: $(GOTESTSUM) # for SUMMARY

.PHONY: test
test: ## Run all tests: unit, integration, truth, e2e; takes the lab down if it booted it (20 minutes, 30 the first time)
	hack/test-all.sh

# GOGC=400 takes a quarter less CPU and a few hundred megabytes more for the controllers' tests, which are the longest.
.PHONY: unit
unit: ## Run the tests without other processes; with the race detector where goroutines share state
	$(SUMMARY) unit bash -c 'code=0; \
	  GOGC=400 $(GO_TEST) -json -timeout 20m $$(go list ./... | grep -vxF "$$(go list $(RACE_PACKAGES))") || code=1; \
	  CGO_ENABLED=1 go test -json -race -vet=off -timeout 20m -skip "$(WITHOUT_RACE)" $(RACE_PACKAGES) || code=1; \
	  $(GO_TEST) -json -run "$(WITHOUT_RACE)" ./internal/collect ./internal/engine || code=1; \
	  (cd hack/lab && $(GO_TEST) -json ./...) || code=1; \
	  (cd hack/lab/kube && $(GO_TEST) -json ./csi/volume) || code=1; \
	  exit $$code'

.PHONY: integration
integration: servers adapters $(HELM) $(HELM3) ## Run the tests against real servers (Redis 7 and 8, Valkey 9), client libraries, a real kube-apiserver and a headless Chromium
	@KUBEBUILDER_ASSETS=$(ASSETS); export KUBEBUILDER_ASSETS; \
	names=$$(sed -nE 's/^func (Test[A-Z][A-Za-z0-9_]*)[(].*/\1/p' $(INTEGRATION_FILES) | grep -vx TestMain | sort -u | paste -sd'|'); \
	GOGC=200 go run ./hack/tools/controlplane $(SUMMARY) integration \
	  env $(GO_TEST) -json -tags integration -count=1 -p 2 -parallel 8 -timeout 20m -run "^($$names)$$" $(INTEGRATION_PACKAGES)

.PHONY: servers
servers:
	@hack/test-needs.sh programs

.PHONY: adapters
adapters: ## Build the adapters of client libraries from the registries' packages: bin/adapters (2 minutes the first time)
	@hack/adapters.sh

# What make stress runs, how often, beside which loads and for how long at most; go run ./hack/tools/stress -h explains them. The smoke test needs the lab.
RUNS ?= 20
BESIDE ?= 2,4,disk
RUN ?=
PACKAGES ?=
LIMIT ?= 24h
E2E ?= $(if $(PACKAGES),no,yes)

.PHONY: stress
stress: servers adapters $(HELM) $(HELM3) $(if $(filter yes,$(E2E)),load-test-images build/install.yaml) ## Run every integration test and the smoke test RUNS times beside each load of BESIDE, or those of PACKAGES and RUN, and go on where it stopped: build/stress.json (as long as LIMIT)
	@KUBEBUILDER_ASSETS=$(ASSETS); export KUBEBUILDER_ASSETS; \
	GOGC=200 REDQUAKE_E2E_INSTALL=$(CURDIR)/build/install.yaml go run ./hack/tools/stress -folder build/stress -runs $(RUNS) -beside $(BESIDE) \
	  -limit $(LIMIT) -run '$(value RUN)' $(if $(filter yes,$(E2E)),-smoke -exec '$(LAB) exec --') $(if $(KEY),-key $(KEY)) $(or $(PACKAGES),$(INTEGRATION_PACKAGES))

# The versions of Kubernetes that make compat runs, beside that of the lab those of hack/lab/kube/versions; what it runs on them; and the servers, all or some.
VERSIONS ?= 1.35.8 1.36.3 1.37.2
STEPS ?= crds kinds smoke
SERVERS ?= all

.PHONY: compat
compat: servers $(GOTESTSUM) ## Run on other versions of Kubernetes, Redis and Valkey, VERSIONS=1.37.2 STEPS=smoke SERVERS=none for some: build/compat.json, docs/compatibility.md (30 minutes)
	STEPS='$(STEPS)' hack/compat.sh kubernetes $(VERSIONS)
	$(if $(filter none,$(SERVERS)),,hack/compat.sh servers $(filter-out all,$(SERVERS)))

.PHONY: accessibility
accessibility: ## Let axe-core look at reports and the dashboard in a headless Chromium, in light and dark; npm downloads it (2 minutes)
	axe=$$(hack/axe.sh); REDQUAKE_AXE=$$axe $(MEASURE) -timeout 10m -run 'InABrowser$$' ./internal/report/run ./internal/report/matrix ./internal/report/schedule ./internal/dashboard

.PHONY: race
race: servers adapters $(HELM) $(HELM3) ## Run unit and integration tests with the race detector everywhere (more than an hour)
	KUBEBUILDER_ASSETS=$(ASSETS); export KUBEBUILDER_ASSETS; \
	go run ./hack/tools/controlplane $(SUMMARY) race \
	  env CGO_ENABLED=1 go test -json -race -vet=off -tags integration -count=1 -p 1 -parallel 4 -timeout 60m ./...

.PHONY: crash-test
crash-test: ## Kill the operator before and after every step of every kind of fault: build/crash.json (35 minutes)
	mkdir -p build
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_CRASH_OUT=$(CURDIR)/build/crash.json \
	  $(MEASURE) -timeout 60m -parallel 4 -run '^(TestCrashSafety|TestLosses|TestCoordinatedFailoverAfterOperatorCrash)$$' ./test/crash ./internal/fault/failover

.PHONY: overlap
overlap: ## Run pairs of all kinds of faults and 200 random schedules on the same Redis; STAGE=pairs/cluster runs a part of them, OVERLAP_COURSE=beside the pairs of some courses, OVERLAP_KINDS='^(Drain|ZoneLoss)' those with such a kind, OVERLAP_SEED repeats schedules: build/overlap.json (some hours)
	mkdir -p build
	$(if $(STAGE)$(OVERLAP_COURSE)$(OVERLAP_KINDS),,rm -f build/overlap.json)
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_OVERLAP_OUT=$(CURDIR)/build/overlap.json \
	  $(MEASURE) -timeout 180m -parallel 4 -run '^TestOverlap$$$(if $(STAGE),/^$(subst /,$$/^,$(STAGE))$$)' ./test/overlap

.PHONY: guard
guard: servers ## Let random faults meet on random Services, selectors, StatefulSets, roles and disks, and count the copies that are left: 500 times in virtual time, SEEDS times on real servers: build/guard.json (15 minutes)
	mkdir -p build
	rm -f build/guard.json
	REDQUAKE_GUARD_OUT=$(CURDIR)/build/guard.json $(MEASURE) -run '^TestGuardIsNeverFooled$$' ./internal/fault/guard
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_GUARD_OUT=$(CURDIR)/build/guard.json REDQUAKE_GUARD_SEEDS=$(or $(SEEDS),20) \
	  $(MEASURE) -timeout 60m -parallel 4 -run '^TestGuardOnRealServers$$' ./test/fuzz

# Tests with a separate target: the smoke test, which consists of the same scenarios, and tests that take long or need the whole machine. Only the lab
# has a registry of its own, and for sure an API server with mutating policies.
E2E_APART := ^(TestSmoke|TestInstallations|TestUpgrade|TestFailovers|TestInjectionTimes|TestChaosMesh|TestChaosMeshAgent|TestObjects|TestNamespaced$(if $(filter lab,$(CLUSTER)),,|TestRegistry|TestAssignedIDs|TestClassicSidecar))$$

.PHONY: build/chaos-controller-manager
build/chaos-controller-manager:
	mkdir -p build
	cd hack/chaosmesh && go build -o $(CURDIR)/$@ github.com/chaos-mesh/chaos-mesh/cmd/chaos-controller-manager

# Chaos Mesh's agent, and the programs of tests that it calls.
CHAOS_DAEMON_IMAGE := build/image/chaos-daemon.tar

.PHONY: build/chaos-daemon
build/chaos-daemon:
	mkdir -p build
	hack/chaosmesh/build-daemon.sh $(CURDIR)/$@
	go build -o build/nsexec ./internal/testing/meshtest/agent

.PHONY: load-chaos-daemon-image
load-chaos-daemon-image: lab-up
	hack/packages.sh chaosmesh
	$(MAKE) build/chaos-daemon
	$(LAB) image chaos-daemon --program build/chaos-daemon --nsexec build/nsexec --tag ghcr.io/redquake/chaos-daemon:dev -o $(CHAOS_DAEMON_IMAGE)
	$(LAB) load $(CHAOS_DAEMON_IMAGE)

.PHONY: chaosmesh
chaosmesh: build/chaos-controller-manager ## Test engine ChaosMesh with Chaos Mesh's controller (its build takes minutes)
	KUBEBUILDER_ASSETS=$(ASSETS) REDQUAKE_CHAOS_CONTROLLER=$(CURDIR)/build/chaos-controller-manager \
	  $(GO_TEST) -tags integration,chaosmesh -count=1 -timeout 15m -run '^TestRealChaosMesh$$' -v ./internal/fault/chaosmesh

.PHONY: build/argocd
build/argocd:
	mkdir -p build
	cd hack/argocd && go build -o $(CURDIR)/$@ github.com/argoproj/argo-cd/v3/cmd

RUN_ARGOCD = REDQUAKE_ARGOCD=$(CURDIR)/build/argocd REDQUAKE_ARGOCD_CRDS=$$(cd hack/argocd && go list -m -f '{{.Dir}}' github.com/argoproj/argo-cd/v3)/manifests/crds

.PHONY: argocd
argocd: build/argocd $(HELM3) ## Let a real Argo CD gate a sync on verdicts, run the actions, look for drift, and install the chart (its build takes minutes)
	KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$($(LAB) assets)} $(RUN_ARGOCD) \
	  $(GO_TEST) -tags integration,argocd -count=1 -timeout 15m -run '^(TestRealArgoCD|TestArgoCDInstallsTheChart)$$' -v ./test/operator

.PHONY: objects-gitops
objects-gitops: ## Write the objects that the tests of Argo CD and Flux read, as the controllers leave them in virtual time
	$(GO_TEST) -count=1 -run '^TestObjectsOf' ./test/virtual -update-objects

# The scenarios need every kind of fault.
bench-inject e2e e2e-full e2e-failovers objects e2e-chaosmesh stress: COMPONENTS := node-faults network-faults volume-faults

E2E_TEST := FORMAT=standard-verbose $(SUMMARY) e2e env REDQUAKE_E2E_INSTALL=$(CURDIR)/build/install.yaml \
  $(GO_TEST) -json -tags e2e -count=1 -exec "$(LAB) exec --"

.PHONY: e2e
e2e: load-test-images build/install.yaml ## Run a smoke test on real kubelets in the lab; boots it if it is down (5 minutes)
	$(E2E_TEST) -timeout 25m -parallel 4 -run '^TestSmoke$$' ./test/e2e

.PHONY: e2e-full
e2e-full: load-test-images load-client-images build/install.yaml ## Run all scenarios on real kubelets, compare figures with documented ones: build/e2e-figures.json (25 minutes)
	REDQUAKE_E2E_FIGURES=$(CURDIR)/build/e2e-figures.json $(E2E_TEST) -timeout 90m -parallel 4 -skip '$(E2E_APART)' ./test/e2e

# Without SOAK_SEED the seed is of the clock; it is printed, and repeats the plan.
SOAK_MINUTES ?= 20
SOAK_SEED ?=

# manifests or chart: what make soak installs.
INSTALL ?= manifests

.PHONY: soak
soak: COMPONENTS := node-faults
soak: lab-up load-image $(if $(filter chart,$(INSTALL)),deploy-chart,deploy) ## Run random load tests, faults and experiments while operator, control plane and nodes are disturbed, SOAK_MINUTES=20, SOAK_SEED, INSTALL=chart: build/soak.json (30 minutes)
	REDQUAKE_LAB=$(LAB) REDQUAKE_SOAK_OUT=$(CURDIR)/build SOAK_SEED=$(SOAK_SEED) SOAK_MINUTES=$(SOAK_MINUTES) \
	  $(GO_TEST) -tags e2e -count=1 -v -timeout $$(($(SOAK_MINUTES) + 60))m -run '^TestSoak$$' -exec "$(LAB) exec --" ./test/soak

.PHONY: e2e-together
e2e-together: load-test-images build/install.yaml ## Apply Redis, load test and fault in one file, TIMES=20: each has a result (10 minutes)
	REDQUAKE_E2E_TOGETHER=$(or $(TIMES),20) $(E2E_TEST) -timeout 90m -parallel 4 -run '^TestAppliedTogether$$' ./test/e2e

.PHONY: e2e-failovers
e2e-failovers: lab-up load-image build/install.yaml ## Run seven failovers from public write-ups, each with Sentinel and with Cluster (8 minutes)
	REDQUAKE_E2E_FIGURES=$(CURDIR)/build/e2e-figures.json $(E2E_TEST) -timeout 40m -parallel 4 -run '^TestFailovers$$' ./test/e2e

.PHONY: objects
objects: load-test-images build/install.yaml ## Run the sample of each workload in the lab and keep the finished objects: docs/objects, docs/workloads.md (10 minutes)
	REDQUAKE_OBJECTS_OUT=$(CURDIR)/docs/objects $(E2E_TEST) -timeout 40m -run '^TestObjects$$' ./test/e2e
	REDQUAKE_DOCS_QUOTE=yes $(GO_TEST) -count=1 -run '^TestQuotedObjects$$' ./docs

# The operator's Deployment is deleted before and after: an installation for all namespaces must not inherit the one that this watches.
.PHONY: e2e-namespaced
e2e-namespaced: NAMESPACES := redquake-e2e
e2e-namespaced: lab-up load-image build/install.yaml ## Run an operator with rights in one namespace only, and delete that under an active fault (5 minutes)
	$(KUBECTL) -n redquake-system delete deployment redquake-controller-manager --ignore-not-found
	$(WITHOUT_CLUSTER_RIGHTS)
	$(KUBECTL) create namespace $(NAMESPACES) --dry-run=client -o yaml | $(KUBECTL) apply -f -
	trap '$(KUBECTL) -n redquake-system delete deployment redquake-controller-manager' EXIT; \
	  $(E2E_TEST) -timeout 15m -run '^TestNamespaced$$' ./test/e2e

.PHONY: e2e-installation
e2e-installation: lab-up load-image load-other-image build/argocd $(HELM) $(HELM3) ## Install by helm 3 and 4, by kubectl, by an overlay and by Argo CD, upgrade, roll back and uninstall under a load and a lasting fault (8 minutes, and some for the build of Argo CD)
	$(MAKE) undeploy
	$(MAKE) build/install.yaml
	$(RUN_ARGOCD) REDQUAKE_E2E_WITHOUT_OPERATOR=yes $(E2E_TEST) -timeout 60m -run '^TestInstallations$$$(if $(WAY),/$(WAY))' ./test/e2e

# The version that is upgraded: the last tag before this commit, or before there is one, this commit itself.
FROM ?= $(shell git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git rev-parse HEAD)
EARLIER := $(CURDIR)/build/earlier

.PHONY: upgrade-test
upgrade-test: lab-up load-image ## Install the version FROM (the last tag), upgrade, go back and upgrade again under a load, a lasting fault and a schedule (8 minutes)
	hack/tools/earlier.sh $(FROM) $(EARLIER)
	$(LAB) load $(EARLIER)/image.tar
	$(MAKE) undeploy
	$(MAKE) build/install.yaml
	REDQUAKE_E2E_WITHOUT_OPERATOR=yes REDQUAKE_E2E_EARLIER=$(EARLIER)/install.yaml $(E2E_TEST) -timeout 45m -run '^TestUpgrade$$' ./test/e2e

.PHONY: locks
locks: ## Count how often two users hold the same lock over failovers by sentinels (1 minute, on a machine without other work)
	REDQUAKE_LOCKS=yes go test -tags integration -count=1 -v -run '^TestLocksOverAFailover$$' ./internal/engine

.PHONY: load-other-image
load-other-image: load-image
	$(LAB) image redquake --manager bin/manager --redquake bin/redquake --netfault bin/netfault --tag mirror.example/redquake:other -o build/image/other.tar
	$(LAB) load build/image/other.tar

.PHONY: e2e-chaosmesh
e2e-chaosmesh: lab-up load-image build/install.yaml build/chaos-controller-manager load-chaos-daemon-image ## Break a loaded Redis by Chaos Mesh's controller, alone and with its agent, in the lab (their build takes minutes)
	REDQUAKE_E2E_INSTALL=$(CURDIR)/build/install.yaml REDQUAKE_CHAOS_CONTROLLER=$(CURDIR)/build/chaos-controller-manager \
	  go test -tags e2e -count=1 -v -timeout 30m -run '^TestChaosMesh(Agent)?$$' -exec "$(LAB) exec --" ./test/e2e/...

## Check

.PHONY: verify
verify: $(CONTROLLER_GEN) $(KUSTOMIZE) $(CRD_REF_DOCS) ## Regenerate everything in a temporary folder and fail if the tree differs
	CONTROLLER_GEN=$(CONTROLLER_GEN) KUSTOMIZE=$(KUSTOMIZE) CRD_REF_DOCS=$(CRD_REF_DOCS) hack/tools/verify.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) $(ACTIONLINT) ## Run golangci-lint, the rules for imports included, and kube-api-linter, measure packages, look for what only a slow machine makes a test fail by, and check workflows and scripts
	$(ACTIONLINT)
	! command -v shellcheck >/dev/null || shellcheck --severity warning .ci/run hack/lab/lab hack/lab/kubectl $$(git ls-files '*.sh')
	$(GOLANGCI_LINT) run ./...
	go run ./hack/tools/apilint ./api/...
	go run ./hack/tools/rooms .
	go run ./hack/tools/testlint -tags integration,e2e,chaosmesh,argocd ./...
	go vet -tags nobounds ./internal/engine/... ./cmd/redquake # what make bench builds

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run golangci-lint and apply its fixes
	$(GOLANGCI_LINT) run --fix ./...

.PHONY: vet
vet: ## Run go vet with all build tags
	go vet -tags integration,e2e,chaosmesh,argocd,oracle,gallery ./...
	go vet -tags nobounds ./internal/engine/... ./cmd/redquake
	cd hack/lab && go vet ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go files (gofumpt, gci)
	$(GOLANGCI_LINT) fmt

## Generate and build

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate the deep-copy functions of the API, and docs/metrics.md
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	go run ./hack/tools/metrics > docs/metrics.md

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRDs and the manager's role from markers in the code, the admission policies and the roles for kinds of faults from internal/fault/declared, argocd-cm from Lua, and what the chart has of all this
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go run ./hack/tools/schemas config/crd/bases config/crd/schemas
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:artifacts:config=config/rbac
	go run ./hack/tools/rights config
	go run ./hack/tools/argocd config
	go run ./hack/tools/chart config charts/redquake

.PHONY: docs
docs: $(CRD_REF_DOCS) ## Generate docs/api.md, the reference of every field, and what docs/redisfault.md and docs/security.md say of each kind of fault
	mkdir -p docs
	CRD_REF_DOCS=$(CRD_REF_DOCS) hack/tools/api-docs.sh docs/api.md
	go run ./hack/tools/kinds docs

.PHONY: build
build: ## Build bin/manager, bin/redquake and bin/netfault, statically linked
	$(GO_BUILD) -o bin/manager .
	$(GO_BUILD) -o bin/redquake ./cmd/redquake
	$(GO_BUILD) -o bin/netfault ./cmd/netfault

.PHONY: image
image: build ## Build the image as an archive, without Docker: build/image/redquake.tar
	mkdir -p $(dir $(IMAGE_TAR))
	$(LAB) image redquake --manager bin/manager --redquake bin/redquake --netfault bin/netfault --tag $(IMG) -o $(IMAGE_TAR)

.PHONY: docker-build
docker-build: ## Build the same image with Docker
	docker build --build-arg VERSION=$(VERSION) -t $(IMG) .

# Edits a copy of config/, so that IMG changes no file under version control.
.PHONY: build/install.yaml
build/install.yaml: $(KUSTOMIZE) ## Write all manifests into one file, with the image IMG
	rm -rf build/kustomize
	mkdir -p build
	cp -r config build/kustomize
	rm build/kustomize/crd/crd.go # or the module would contain its package twice
	cd build/kustomize/manager && $(KUSTOMIZE) edit set image ghcr.io/redquake/redquake=$(IMG)
	$(if $(components),cd build/kustomize/default && $(KUSTOMIZE) edit add component $(components:%=../components/%))
	$(if $(NAMESPACES),hack/tools/namespaced.sh $(KUSTOMIZE) build/kustomize '$(NAMESPACES)',$(KUSTOMIZE) build build/kustomize/default) > $@

# What hack/release calls by name.
RELEASE_TOOLS := $(GORELEASER) $(SYFT) $(HELM) $(KREW)
empty :=
RELEASE_PATH := $(subst $(empty) $(empty),:,$(dir $(RELEASE_TOOLS)))
RELEASE := PATH="$(RELEASE_PATH):$$PATH" go run ./hack/release

.PHONY: release-snapshot
release-snapshot: $(RELEASE_TOOLS) $(KUSTOMIZE) ## Build everything of a release of this commit, without Docker, and let krew install it: build/release (10 minutes)
	$(RELEASE) -snapshot

.PHONY: release
release: $(RELEASE_TOOLS) $(KUSTOMIZE) ## Build the release of the tag VERSION, which is checked out: build/release/assets; publishes nothing (10 minutes)
	$(RELEASE) -version $(VERSION)

.PHONY: publish-tools
publish-tools: $(ORAS) $(HELM)

# PLAIN_HTTP=yes for a registry on this machine.
.PHONY: push-release
push-release: publish-tools ## Push image and chart of build/release to REGISTRY, as the workflow release.yaml does
	PATH="$(dir $(ORAS)):$(dir $(HELM)):$$PATH" hack/release/push.sh $(or $(REGISTRY),$(error set REGISTRY, such as ghcr.io/redquake))

.PHONY: clean
clean: ## Remove build/ and the programs; bin/tools and the lab's binaries stay
	rm -rf build bin/manager bin/redquake

## Run on a cluster

.PHONY: lab-up
lab-up: ## Boot the two-node lab on this machine (the first time about 10 minutes, to compile it)
	$(LAB) up

.PHONY: lab-status
lab-status: ## Show whether the lab is up
	$(LAB) status

.PHONY: lab-down
lab-down: ## Stop the lab and remove its processes, namespaces, mounts and state
	$(LAB) down

.PHONY: load-image
load-image: image ## Build the image and load it onto the nodes of the lab
	$(LAB) load $(IMAGE_TAR)

# What the tests need beside the operator and Redis 7.
TEST_IMAGES := postgres mariadb redis-8 valkey-9 prometheus

# The adapters of client libraries, with this machine's runtimes.
CLIENTS := python node java rust

.PHONY: load-client-images
load-client-images: lab-up adapters
	for language in $(CLIENTS); do $(LAB) image client --language $$language --adapters bin/adapters \
	  --tag ghcr.io/redquake/redquake-client-$$language:dev -o build/image/client-$$language.tar; done
	$(LAB) load $(CLIENTS:%=build/image/client-%.tar)

.PHONY: load-test-images
load-test-images: lab-up load-image
	hack/newer-servers.sh
	for name in $(TEST_IMAGES); do $(LAB) image $$name -o build/image/$$name.tar; done
	$(LAB) load $(TEST_IMAGES:%=build/image/%.tar)

.PHONY: install
install: $(KUSTOMIZE) ## Install the CRDs only
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side --force-conflicts -f -

# Takes the rights in all namespaces from an operator that is to have them in NAMESPACES only.
WITHOUT_CLUSTER_RIGHTS = $(KUBECTL) get clusterrolebindings -l app.kubernetes.io/part-of=redquake -o name \
  | { grep -E '/redquake-(manager|metrics)-' || true; } | xargs -r $(KUBECTL) delete

.PHONY: deploy
deploy: build/install.yaml ## Install the CRDs and the operator, with the image IMG and COMPONENTS, with rights in all namespaces or in NAMESPACES
	$(KUBECTL) apply --server-side --force-conflicts -f build/install.yaml
	$(foreach kind,node-faults network-faults volume-faults,$(if $(filter $(kind),$(components)),,$(KUBECTL) delete clusterrolebindings,clusterroles \
	  -l app.kubernetes.io/name=redquake,app.kubernetes.io/component=$(kind);))
	$(if $(NAMESPACES),$(WITHOUT_CLUSTER_RIGHTS))
	# The tag stays the same when the image changes: the digest in the pod template rolls the operator if and only if it did.
	[ ! -f $(IMAGE_TAR) ] || $(KUBECTL) -n redquake-system patch deployment redquake-controller-manager --type merge \
	  -p "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"redquake.dev/image-digest\":\"$$(sha256sum < $(IMAGE_TAR) | cut -c1-64)\"}}}}}"
	$(KUBECTL) -n redquake-system rollout status deployment/redquake-controller-manager --timeout=10m

# With the lab's image; VALUES are flags of helm. What was installed by manifests is removed: helm takes over no objects of others.
.PHONY: deploy-chart
deploy-chart: $(HELM) ## Install the chart in the lab, with VALUES='--set replicas=2'
	[ -n "$$($(KUBECTL) -n redquake-system get secret -l owner=helm,name=redquake -o name 2>/dev/null)" ] || $(MAKE) undeploy
	$(LAB) exec -- $(HELM) upgrade --install redquake charts/redquake --namespace redquake-system --create-namespace --set image.tag=dev \
	  $(if $(filter node-faults,$(components)),--set faults.NodeLoss=true$(comma)faults.VolumeAttachDelay=true$(comma)faults.ZoneLoss=true) \
	  $(if $(filter volume-faults,$(components)),--set faults.DiskFull=true$(comma)faults.VolumeLoss=true) \
	  $(if $(filter network-faults,$(components)),--set networkFaults=true) $(VALUES) --wait --timeout 10m

# The objects are deleted first, while the operator runs: it reverts the faults before it removes their finalizers.
.PHONY: undeploy
undeploy: COMPONENTS := node-faults network-faults volume-faults dashboards high-availability # all that may be installed, but prometheus: its kinds may be unknown to the cluster
undeploy: build/install.yaml ## Delete all schedules, experiments, load tests and faults, then the operator and the CRDs
	for crd in redisexperimentschedules redisexperiments redisfaults redisloadtests; do \
	  $(KUBECTL) get crd $$crd.redquake.dev >/dev/null 2>&1 || continue; \
	  $(KUBECTL) delete $$crd.redquake.dev --all --all-namespaces --ignore-not-found --timeout=10m || \
	    { echo "failed to delete all $$crd; the operator stays, so that it can revert its faults" >&2; exit 1; }; \
	done
	$(KUBECTL) delete --ignore-not-found -f build/install.yaml
	# What an installation for some namespaces has in addition, and what an earlier version had.
	$(KUBECTL) delete clusterroles,clusterrolebindings,roles,rolebindings --all-namespaces -l 'app.kubernetes.io/name=redquake,app.kubernetes.io/managed-by!=Helm'

# install-tool FOLDER PACKAGE VERSION
define install-tool
	@mkdir -p $(1)
	GOBIN=$(1) go install $(2)@$(3)
endef

$(CONTROLLER_GEN):
	$(call install-tool,$(@D),sigs.k8s.io/controller-tools/cmd/controller-gen,$(CONTROLLER_GEN_VERSION))
$(KUSTOMIZE):
	$(call install-tool,$(@D),sigs.k8s.io/kustomize/kustomize/v5,$(KUSTOMIZE_VERSION))
$(GOLANGCI_LINT):
	$(call install-tool,$(@D),github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))
$(CRD_REF_DOCS):
	$(call install-tool,$(@D),github.com/elastic/crd-ref-docs,$(CRD_REF_DOCS_VERSION))
$(GOTESTSUM):
	$(call install-tool,$(@D),gotest.tools/gotestsum,$(GOTESTSUM_VERSION))
$(HELM):
	$(call install-tool,$(@D),helm.sh/helm/v4/cmd/helm,$(HELM_VERSION))
$(HELM3):
	$(call install-tool,$(@D),helm.sh/helm/v3/cmd/helm,$(HELM3_VERSION))
$(ACTIONLINT):
	$(call install-tool,$(@D),github.com/rhysd/actionlint/cmd/actionlint,$(ACTIONLINT_VERSION))
$(GORELEASER):
	$(call install-tool,$(@D),github.com/goreleaser/goreleaser/v2,$(GORELEASER_VERSION))
$(SYFT):
	$(call install-tool,$(@D),github.com/anchore/syft/cmd/syft,$(SYFT_VERSION))
$(KREW):
	$(call install-tool,$(@D),sigs.k8s.io/krew/cmd/krew,$(KREW_VERSION))
$(ORAS):
	$(call install-tool,$(@D),oras.land/oras/cmd/oras,$(ORAS_VERSION))
